// Package progress says on standard error how far a long run has come.
package progress
