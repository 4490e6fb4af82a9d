// Package definition reads MutatingPolicies and their exceptions as they are
// written: everything but their expressions, which it hands on as text.
package definition
