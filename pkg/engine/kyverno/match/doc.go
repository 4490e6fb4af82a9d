// Package match decides the match and exclude blocks of Kyverno's rules.
package match
