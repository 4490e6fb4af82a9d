// Package library declares the CEL functions that Kyverno adds to Kubernetes' own,
// and answers those that ask for anything beside their arguments from an
// engine.World.
//
// Functions that are pure come from Kyverno's own SDK. Those that reach out, read
// a clock, draw random values or unpack data are written here: they go through
// the World, stand still during a run and are bounded.
package library
