// Package policyreport writes a run as the Kubernetes objects in which policy engines keep their results, a report for each object.
//
// Kyverno does the same: the report's scope names the object, and its results need
// not. The objects are YAML documents that kubectl apply takes, with names that do
// not change from run to run.
package policyreport
