// Package file writes a file that takes the place of another only when it is whole.
package file
