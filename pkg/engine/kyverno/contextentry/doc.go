// Package contextentry loads the values that the context entries of Kyverno rules
// name.
//
// An entry gets its value from one source: the policy itself (variable), a
// ConfigMap, a request to the API server or a web service (apiCall), data that
// Kyverno keeps for all policies (globalReference), or an image registry. What
// costs a request is asked once in a run, and nothing is asked for an entry that
// no expression uses.
package contextentry
