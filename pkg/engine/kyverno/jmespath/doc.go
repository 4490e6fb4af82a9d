// Package jmespath evaluates the JMESPath expressions of Kyverno policies.
//
// The grammar is that of github.com/kyverno/go-jmespath, whose parser it uses,
// and so are the rules about missing keys that policies rely on: a missing key
// is an error, unless a comparison, a function argument, the left of ||, a pipe
// or a projection swallows it. The evaluator is its own, because the fork knows
// no integers, sorts its input in place, ranges over maps in random order and
// can be driven into panics and exponential work:
//
//   - int64 and float64 are both numbers, compare by value, and a whole result
//     is an int64;
//   - inputs are shared with results and never modified;
//   - objects are walked in the order of their keys;
//   - one Search costs a bounded number of steps and bytes.
//
// What expressions may call is in the package functions, and jsonvalue says what
// their values are.
package jmespath
