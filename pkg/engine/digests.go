package engine

import "hash/maphash"

// Digests is a set of keys, of which it keeps 16 bytes each: it holds as many as a cluster has objects, and none
// of their texts. With 128 bits and random seeds, no two keys have the same digest in practice. It is safe for concurrent readers.
type Digests[K comparable] struct {
	digester[K]
	known map[[2]uint64]struct{}
}

// NewDigests returns an empty set.
func NewDigests[K comparable]() *Digests[K] {
	return &Digests[K]{newDigester[K](), map[[2]uint64]struct{}{}}
}

// Add adds a key, and reports whether it was not there.
func (d *Digests[K]) Add(key K) bool {
	before := len(d.known)
	d.known[d.of(key)] = struct{}{}
	return len(d.known) > before
}

// Has reports whether a key was added.
func (d *Digests[K]) Has(key K) bool {
	_, known := d.known[d.of(key)]
	return known
}

// digester makes digests of keys.
type digester[K comparable] struct{ seeds [2]maphash.Seed }

func newDigester[K comparable]() digester[K] {
	return digester[K]{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

func (d digester[K]) of(key K) [2]uint64 {
	return [2]uint64{maphash.Comparable(d.seeds[0], key), maphash.Comparable(d.seeds[1], key)}
}
