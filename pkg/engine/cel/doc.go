// Package cel compiles the CEL expressions of policies, evaluates them within a
// budget, and turns their results into new objects.
//
// MutatingAdmissionPolicy and Kyverno's MutatingPolicy share it. It is the only package
// that imports k8s.io/apiserver, whose API changes with every release. A Scope has the
// variables of one policy, Expressions are compiled against it, and an Evaluation
// evaluates them on one Input. A Mutation applies the result of its expression to the
// object: a list of JSON patch operations, or an apply configuration. What expressions
// compute from the values of Secrets is reported to Input.Secrets.
package cel
