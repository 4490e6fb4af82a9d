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

// Places are the places of keys in a list, of which it keeps 24 bytes each, as Digests does. It is safe for concurrent readers.
type Places[K comparable] struct {
	digester[K]
	known map[[2]uint64]int
}

// NewPlaces returns the places of an empty list.
func NewPlaces[K comparable]() *Places[K] {
	return &Places[K]{newDigester[K](), map[[2]uint64]int{}}
}

// Add adds a key to the end of the list, which does not have it yet.
func (p *Places[K]) Add(key K) { p.known[p.of(key)] = len(p.known) }

// Of returns the place of a key, and reports whether it has one.
func (p *Places[K]) Of(key K) (int, bool) {
	place, is := p.known[p.of(key)]
	return place, is
}

// digester makes digests of keys.
type digester[K comparable] struct{ seeds [2]maphash.Seed }

func newDigester[K comparable]() digester[K] {
	return digester[K]{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

func (d digester[K]) of(key K) [2]uint64 {
	return [2]uint64{maphash.Comparable(d.seeds[0], key), maphash.Comparable(d.seeds[1], key)}
}
