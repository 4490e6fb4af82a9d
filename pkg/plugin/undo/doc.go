// Package undo takes back the writes of a run, as its journal has them.
//
// A value is put back only where the object still has the one that the server
// answered to the write, with whatever admission made of it. What somebody else
// has changed since is left alone, and told with who owns it now. Elements of
// lists are found by their key, lists without keys are put back whole, and the
// order of elements is restored among those that are left.
package undo
