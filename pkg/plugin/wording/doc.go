// Package wording writes names and counts for people, cells of tables, and words for a shell.
// What it returns is not masked, and but for cells and words not escaped: the printers do that.
package wording
