// Package patch turns the values that mutations evaluate to, Object{...} and
// JSONPatch{...}, into new objects, as an API server does.
//
// EnvOptions declares their types to the expressions of a CEL environment. Merge
// takes the one kind of value, Apply the other; neither modifies the object. What
// an expression may build is bounded by Fits, because CEL's cost does not bound
// it: whoever holds a value asks that before looking into it.
package patch
