// Package library declares the CEL functions that Kyverno adds to those of Kubernetes.
//
// Pure functions come from Kyverno's own SDK. Those that make requests, read a clock, draw
// random values or unpack data are implemented here: they go through an engine.World,
// give the same result throughout a run, and are bounded.
package library
