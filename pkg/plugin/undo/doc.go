// Package undo reverts the writes of a run that its journal recorded.
//
// A value is put back only if the object still has the one that the server answered to
// the write, including what admission changed. What another client has changed since is
// kept, and reported with its present owner. Elements of lists are found by their key,
// lists without keys are put back whole, and the order of elements is restored among
// those that are left.
package undo
