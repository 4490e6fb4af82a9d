// Package place says where in an object a field stands, whatever the elements of
// lists are called, and what stands there.
package place
