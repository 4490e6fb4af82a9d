// Package conditions evaluates the preconditions of Kyverno policies: an any/all
// map, or a flat list, of keys, operators and values.
package conditions
