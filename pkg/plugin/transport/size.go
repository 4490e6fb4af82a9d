package transport

import "bytes"

// What the parts of a JSON text take when it is decoded into Go's maps and slices, above
// the bytes of the text itself: measured, and rounded up.
const (
	objectSize = 352 // a map with room for eight members
	arraySize  = 40
	memberSize = 48 // a member or an element that follows another one
)

// MaxRatio is how many times its text a JSON text takes at most, as DecodedSize counts.
const MaxRatio = objectSize + 1

// DecodedSize estimates, from above, the bytes that a JSON text, or a part of one, takes when it
// is decoded: "[1,1,1]" two dozen times its text, and nested objects seventy times. Brackets and
// commas in strings count as well, which makes the count nearly free.
func DecodedSize(text []byte) int {
	return len(text) + objectSize*bytes.Count(text, []byte{'{'}) +
		arraySize*bytes.Count(text, []byte{'['}) + memberSize*bytes.Count(text, []byte{','})
}
