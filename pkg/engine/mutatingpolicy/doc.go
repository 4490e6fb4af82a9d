// Package mutatingpolicy evaluates Kyverno's MutatingPolicy and
// NamespacedMutatingPolicy, whose expressions are CEL.
//
// A policy is compiled into rules: one as written and, if it is only for Pods, those that Kyverno derives for
// Pod controllers. The rules run by policy name; each sees the object as the previous one left it.
//
// A policy with evaluation.mutateExisting and targetMatchConstraints changes other objects than it matches:
// it matches triggers, and the rule becomes Effects on the targets. Without targetMatchConstraints every
// object is its own trigger, and the rule is evaluated like any other.
//
// Kyverno's CEL functions are also here (library.go, session.go). Package cel has the parts shared with
// MutatingAdmissionPolicies.
package mutatingpolicy
