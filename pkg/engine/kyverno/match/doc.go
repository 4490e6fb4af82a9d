// Package match decides whether a Kyverno rule applies to an object, by its match and exclude blocks and its
// preconditions.
package match
