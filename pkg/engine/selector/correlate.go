package selector

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// correlate returns the first place in a text where a segment with `?` fits, or -1. No search
// that skips ahead knows `?`, so it computes a check sum at all places of a part of the text
// together: the sum of the characters where the segment has one, each times a random weight.
// That is a convolution, which takes n log n steps. A place with the sum of the segment is
// compared; the weights decide how many others have it by chance, and never the answer.
func correlate(text, segment []rune) int {
	probe := segment[:min(len(segment), longestTransform/2)]
	n := 1 << bits.Len(uint(2*len(probe)-1))
	weights, want := make([]uint32, n), uint64(0)
	for i, c := range probe {
		if c != '?' {
			w := 1 + rand.Uint32N(modulus-1) //nolint:gosec // it guards nothing
			weights[len(probe)-1-i] = w
			want = (want + uint64(w)*uint64(c)) % modulus
		}
	}
	want = want * uint64(n) % modulus // convolve leaves this factor
	transform(weights)
	sums := make([]uint32, n)
	places := n - len(probe) + 1 // that one convolution covers
	for start := 0; start+len(segment) <= len(text); start += places {
		part := text[start:min(start+n, len(text))]
		clear(sums)
		for i, c := range part {
			sums[i] = uint32(c)
		}
		convolve(sums, weights)
		for i := 0; i < places && start+i+len(segment) <= len(text); i++ {
			if uint64(sums[i+len(probe)-1]) == want && fits(segment, text[start+i:]) {
				return start + i
			}
		}
	}
	return -1
}

// The field of the transform: a prime of the form k*2^23+1, and a generator of it.
const (
	modulus          = 998244353
	generator        = 3
	longestTransform = 1 << 23
)

// convolve multiplies a by what has been transformed, and by the length.
func convolve(a, transformed []uint32) {
	transform(a)
	for i := range a {
		a[i] = uint32(uint64(a[i]) * uint64(transformed[i]) % modulus)
	}
	transform(a)
	slices.Reverse(a[1:]) // which makes it the inverse, but for the factor
}

// transform is the number theoretic transform, in place. The length is a power of two.
func transform(a []uint32) {
	shift := 64 - bits.Len(uint(len(a)-1))
	for i := range a {
		if j := int(bits.Reverse64(uint64(i)) >> shift); i < j {
			a[i], a[j] = a[j], a[i]
		}
	}
	powers := make([]uint64, len(a)/2)
	for half := 1; half < len(a); half *= 2 {
		powers[0] = 1
		root := power(generator, (modulus-1)/(2*half))
		for k := 1; k < half; k++ {
			powers[k] = powers[k-1] * root % modulus
		}
		for start := 0; start < len(a); start += 2 * half {
			low, high := a[start:start+half], a[start+half:start+2*half]
			for k, x := range low {
				y := uint32(uint64(high[k]) * powers[k] % modulus)
				low[k], high[k] = (x+y)%modulus, (x+modulus-y)%modulus
			}
		}
	}
}

func power(base uint64, exponent int) uint64 {
	result := uint64(1)
	for ; exponent > 0; exponent /= 2 {
		if exponent%2 == 1 {
			result = result * base % modulus
		}
		base = base * base % modulus
	}
	return result
}
