// Package variables substitutes the {{ }} variables of Kyverno policies.
//
// A Scope is the context in which variables are looked up; its entries may load lazily. A Template is a value
// with variables, compiled once and rendered for each evaluation. Substituted data is never substituted
// again: the content of objects is not policy.
package variables
