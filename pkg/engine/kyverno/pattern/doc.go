// Package pattern matches values against Kyverno's pattern language, which anchors of mutate rules use as
// conditions.
//
// A scalar pattern may hold alternatives (`a | b`), conjunctions (`>1 & <5`),
// the operators `>=`, `<=`, `>`, `<` and `!`, ranges (`1-5`, `1Gi!-2Gi`),
// durations, quantities and the wildcards `*` and `?`. Maps and lists nest, and their keys may be anchors.
// Patterns behave as in Kyverno 1.19's packages engine/pattern and engine/validate; where Go's random map
// order decides there, this package sorts keys and checks conditions first.
package pattern
