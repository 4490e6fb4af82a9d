// Package jsonpatch applies Kyverno's patchesJson6902, a JSON patch (RFC 6902),
// to an object.
//
// It works on the decoded object and copies only the maps and lists on the way
// to what an operation changes; the JSON libraries decode and encode the whole
// object. The meaning is that of evanphx/json-patch with the options that
// Kyverno 1.19 sets (negative indices; add creates missing parents; remove of a
// missing path does nothing), against which the tests compare it, but for one
// thing: replace of a missing path adds, as Kyverno's documents say.
package jsonpatch
