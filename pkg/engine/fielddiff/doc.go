// Package fielddiff lists the fields in which two objects differ.
//
// Paths are structured-merge-diff paths: elements of keyed lists are named by
// their key, so that an inserted container is one added element and not a
// rewritten list. Subtrees that the two objects share by identity are skipped.
package fielddiff
