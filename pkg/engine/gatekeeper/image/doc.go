// Package image takes references of container images apart and exchanges their
// parts, as AssignImage does.
package image
