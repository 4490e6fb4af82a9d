// Package jsonpatch applies Kyverno's patchesJson6902, a JSON patch (RFC 6902),
// to an object.
//
// It is beside evanphx/json-patch, which Kyverno uses, because that works on text:
// for each patch the object would be encoded, applied to and decoded again, and all
// of the result would be new. This package copies only the maps and lists on the way
// to what an operation changes, so that what was not touched is shared and an
// unchanged object is known as such. It reports which operation found nothing to do,
// and bounds what copies and indices may write.
//
// The meaning is that of the library with the options that Kyverno 1.19 sets
// (negative indices; add creates missing parents; remove of a missing path does
// nothing), against which TestApplyAgreesWithEvanphx compares it, but for one thing:
// replace of a missing path adds, as Kyverno's documents say.
package jsonpatch
