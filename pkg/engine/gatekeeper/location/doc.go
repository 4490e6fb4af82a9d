// Package location implements the spec.location of Gatekeeper's mutators: it
// parses a location into typed nodes, checks the path tests of a mutator against
// them, and walks an object along them to set a value.
package location
