// Package mutatingpolicy evaluates Kyverno's MutatingPolicy and
// NamespacedMutatingPolicy, whose expressions are CEL.
//
// A policy is compiled to rules: one as it is written and, if it is for Pods only, those
// that Kyverno derives for Pod controllers. The rules run by policy name; each sees the
// object as the one before left it.
//
// A policy with evaluation.mutateExisting and targetMatchConstraints changes other objects
// than it matches: what it matches are triggers, and the rule becomes Effects on the
// targets. Without targetMatchConstraints every object is its own trigger, and the rule
// is evaluated like any other.
//
// Kyverno's CEL functions are here too (library.go, session.go). Package cel has what
// MutatingAdmissionPolicies need as well.
package mutatingpolicy
