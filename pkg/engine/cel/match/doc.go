// Package match selects admission requests by the matchConstraints and matchResources
// of policies, as the webhook machinery of an API server does.
//
// MutatingAdmissionPolicy and Kyverno's MutatingPolicy share the fields and their
// meaning. What differs is the caller's: defaults, bindings, autogen. The package knows no
// CEL, so it is not part of package cel.
package match
