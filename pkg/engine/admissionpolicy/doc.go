// Package admissionpolicy evaluates Kubernetes' MutatingAdmissionPolicies with their bindings and parameters.
//
// Each policy is evaluated once per binding and parameter, in the order of their names: an API server
// promises none. A policy from the cluster without a binding does nothing, as there; one from a file is
// evaluated as if it were bound to everything.
//
// As on a server, all policies are matched with the object in the request, and then mutate it one after the
// other; those with the reinvocationPolicy IfNeeded do so again in the second round. If a policy with
// failurePolicy Fail fails, the object would be denied, so no policy changes it.
package admissionpolicy
