// Package selector matches strings, kinds, labels and annotations against the patterns that the policy
// languages share: wildcards, Kyverno's kinds, and label selectors with and without wildcards.
package selector
