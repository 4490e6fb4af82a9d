// Package hints suggests the command to type after a preview.
package hints
