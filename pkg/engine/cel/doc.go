// Package cel compiles the CEL expressions of policies, evaluates them, and turns their
// results into new objects, all with the API server's own packages.
//
// MutatingAdmissionPolicy and Kyverno's MutatingPolicy share it. It and the package match below
// it are the only ones that import k8s.io/apiserver, whose API changes with every release. A
// Scope has the variables of one policy, Expressions are compiled against it, and an Evaluation
// evaluates them on one Input, at the cost that an API server allows. A Mutation applies the
// result of its expression to the object: a list of JSON patch operations, or an apply
// configuration. What is kept around an API server's packages is where an expression stands, and
// why it does not hold.
package cel
