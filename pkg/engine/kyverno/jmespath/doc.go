// Package jmespath evaluates the JMESPath of Kyverno's policies, with all of Kyverno's functions.
//
// Expressions are parsed by github.com/kyverno/go-jmespath but evaluated here: the library knows no integers,
// sorts its input in place, panics on contains with maps, and can build results of exponential size. Its
// rules for unknown keys are kept. TestSearchAgreesWithTheLibrary compares the two.
package jmespath
