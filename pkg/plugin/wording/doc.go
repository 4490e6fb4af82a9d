// Package wording writes names and counts for people, and words for a shell.
package wording
