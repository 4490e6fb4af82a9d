// Package diff compares two states of an object and lists the fields in which
// they differ.
//
// Paths are structured-merge-diff paths: elements of keyed lists are named by
// their key, so that an inserted container is one added element and not a
// rewritten list. Subtrees that both states share are skipped.
package diff
