// Package location implements the spec.location of Gatekeeper's mutators. Parse returns a
// Path of typed nodes, CompileTests checks the path tests of a mutator against it, and
// Walk follows it through an object to set a value.
package location
