// Package cel compiles the CEL expressions of policies, evaluates them within a
// budget, and turns their results into new objects.
//
// It is shared by MutatingAdmissionPolicy and Kyverno's MutatingPolicy, and it is
// the only package that imports k8s.io/apiserver, whose API changes with every
// release. A Scope holds the variables of one policy, an Expression is compiled
// against it, and ApplyPatch and Merge apply what a mutation returns: a list of
// JSON patch operations, or an apply configuration. A Taint records what
// expressions derive from the values of Secrets.
package cel
