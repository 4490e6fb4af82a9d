// Package match decides whether a Kyverno rule is about an object: its match and
// exclude blocks, and its preconditions with their operators.
package match
