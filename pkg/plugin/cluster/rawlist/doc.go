// Package rawlist splits the JSON lists of an API server into objects without
// decoding them.
//
// Decoding is what listing a large cluster costs. A page is split once, which
// reads of each object only what a selection asks for (name, namespace, UID,
// labels, controller). The objects that are wanted are decoded afterwards, side
// by side, by a decoder that gives the very values that apimachinery's JSON
// package gives, at a fraction of its time and memory.
package rawlist
