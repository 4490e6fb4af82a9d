// Package memory knows how much memory a run may have on this machine.
package memory
