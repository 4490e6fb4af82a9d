// Package match decides whether a mutator applies to an object.
package match
