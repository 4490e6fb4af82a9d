// Package file writes files that replace others in one step, when they are complete.
package file
