// Package variables substitutes the {{ }} variables of Kyverno policies.
//
// A Scope is the context that variables are looked up in; its entries may load
// their data lazily. A Template is a value with variables, compiled once and
// rendered for each evaluation. Substituted data is never substituted again:
// the content of objects is not policy.
package variables
