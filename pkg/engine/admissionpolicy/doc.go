// Package admissionpolicy evaluates Kubernetes' MutatingAdmissionPolicies with
// their bindings and parameters.
//
// Each policy is evaluated once for each binding and each parameter that the
// binding names, in the order of their names: an API server promises none. A
// policy from the cluster that nothing binds does nothing, as there; one from a
// file, with no binding beside it, is evaluated as if it were bound to everything.
//
// As on a server, all policies are matched against the object as the request
// brings it, and then mutate it one after the other; those with the
// reinvocationPolicy IfNeeded do so once more in the second round. Where a policy
// fails and its failurePolicy is Fail, the object would be denied, so that no
// policy changes it.
package admissionpolicy
