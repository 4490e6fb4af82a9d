// Package diff compares two states of an object and lists the fields in which they differ.
//
// Paths are structured-merge-diff paths: elements of keyed lists are named by their key, so that an inserted
// container is one added element and not a rewritten list. Subtrees that both states share are skipped.
//
// A Partial keeps a change without the rest of its object, for plans, journals and undo. It defines the
// leaves of a change, and so drift: a leaf whose value is not the one before, or after, the change. Subset
// makes some of the differences between two states, and leaves the others.
package diff
