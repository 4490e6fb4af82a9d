// Package legacy applies mutate.overlay, which Kyverno 1.0 to 1.5 had.
//
// It does what Kyverno's documents of that time say, and where these are silent,
// what its versions 1.0 and 1.1 did; from 1.2 on an overlay silently ran as
// patchStrategicMerge, and 1.6 dropped it.
//
// An overlay describes what an object should hold, and never deletes. All its
// conditions are judged first, on the object as it was; each must hold, in a list
// for one element at least. Then its values are written: maps key by key, scalars
// over what was there, and the elements of lists as their form says:
//
//   - an element with conditions is merged into every live element that meets them;
//   - one that holds only maps, lists and add anchors, into every live element;
//   - any other is a new item, put at the end unless a live one holds all of it.
//
// A map in the place of a list stands for each of its elements.
package legacy
