// Package jmespath evaluates the JMESPath of Kyverno's policies, with all of
// Kyverno's functions.
//
// Expressions are parsed by github.com/kyverno/go-jmespath and evaluated by our own
// walk over its syntax tree: the library knows no integers, sorts its input in
// place, panics on contains with maps, and can be driven into results of
// exponential size. Its rules for unknown keys are kept. TestSearchAgreesWithTheLibrary
// compares the two.
package jmespath
