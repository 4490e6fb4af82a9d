// Package wording writes names and counts for people, and words for a shell. What it
// returns is neither masked nor escaped: the printers do that.
package wording
