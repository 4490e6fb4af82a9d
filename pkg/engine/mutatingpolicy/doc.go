// Package mutatingpolicy evaluates Kyverno's MutatingPolicy and
// NamespacedMutatingPolicy, whose expressions are CEL.
//
// A policy is read once into rules: itself as it is written and, if it is for Pods
// alone, those that Kyverno derives for Pod controllers. For an object, the rules
// run by policy name; each sees what the one before made of the object.
//
// A policy with evaluation.mutateExisting and targetMatchConstraints does not
// change what it matches: what it matches are triggers, and the rule becomes
// Effects on the targets. Without targetMatchConstraints every object is its own
// trigger, and the rule is evaluated like any other.
//
// The parts of the language that stand on their own are packages below this one;
// celpatch does what MutatingAdmissionPolicies need as well.
package mutatingpolicy
