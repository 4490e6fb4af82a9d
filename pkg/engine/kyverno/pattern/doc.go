// Package pattern matches values against Kyverno's pattern language, in which
// the anchors of mutate rules say their conditions.
//
// A scalar pattern may hold alternatives (`a | b`), conjunctions (`>1 & <5`),
// the operators `>=`, `<=`, `>`, `<` and `!`, ranges (`1-5`, `1Gi!-2Gi`),
// durations, quantities and the wildcards `*` and `?`. Maps and lists nest, and
// their keys may be anchors. The behaviour is that of Kyverno 1.19's packages
// engine/pattern and engine/validate; where those depend on Go's random map
// order, this package sorts keys and checks conditions first.
package pattern
