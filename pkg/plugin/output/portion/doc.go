// Package portion makes, of all differences between two objects, only some.
package portion
