// Package match decides which requests the matchConstraints of a policy and the
// matchResources of a binding name, as an API server decides it.
package match
