// Package file writes files that replace others in one step, when they are complete, and temporary ones that nobody else can read.
package file
