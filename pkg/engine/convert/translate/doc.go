// Package translate translates the JMESPath, variables and conditions of Kyverno's mutate rules to CEL, for
// MutatingPolicies and MutatingAdmissionPolicies.
//
// A Value is an expression with its behavior for missing fields: Kyverno distinguishes a failing rule, null
// and an empty string, but CEL only has errors. So a Value has the conditions that it exists (Has) and that
// the rule does not fail (Guard), and an expression with a default (Or).
//
// The schema of a kind gives the types of fields. Without one, a field with subfields is assumed to be a map,
// a field with elements a list, and a field with a default to have the default's type; functions and
// operators check the type that they need. Fields are never null: servers drop nulls. Unlike in Kyverno's
// operators, a wildcard in a value of the object is literal.
package translate
