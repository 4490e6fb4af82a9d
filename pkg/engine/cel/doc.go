// Package cel compiles and evaluates the CEL expressions of policies and turns their results into new
// objects, with the API server's own packages.
//
// MutatingAdmissionPolicy and Kyverno's MutatingPolicy share it. Only this package imports k8s.io/apiserver,
// whose API changes with every release. A Scope compiles the expressions of one policy, and an Evaluation
// evaluates them on one Input, within an API server's cost limits. A mutation applies the result of its
// expression to the object: a list of JSON patch operations, or an apply configuration. This package adds the
// places of expressions, and reasons why they do not hold.
package cel
