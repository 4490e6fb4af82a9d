// Package translate turns what Kyverno's mutate rules say in JMESPath, in variables and in conditions
// into CEL, for MutatingPolicies and MutatingAdmissionPolicies.
//
// A Value is an expression, and what it is where a field is missing: Kyverno tells a rule that
// fails from one whose value is null, and both from an empty string, and CEL knows only an error. So a
// Value says under which condition it is there (Has), under which the rule does not fail (Guard), and what
// it is with a default (Or).
//
// What a field holds is known from the schema of its kind. Without one, a field that others are asked of is
// taken for a map, one whose elements are asked for a list, and one that has a default for what the default
// is; functions and operators then ask for the type that they need. A field is never null: servers drop
// nulls. A wildcard in a value of the object is not taken for one, as Kyverno's operators do.
package translate
