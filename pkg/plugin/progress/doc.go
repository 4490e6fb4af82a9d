// Package progress shows on standard error how far a long run is.
package progress
