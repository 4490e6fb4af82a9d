// Package file writes files that take the place of others in one step, when they are whole.
package file
