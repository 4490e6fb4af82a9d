package human

import "testing"

// What is kept of the values of many fields grows as append does: it is not copied for each of them.
func TestLikenessGrowsAsAppendDoes(t *testing.T) {
	const values, most = 1000, 50
	if n := testing.AllocsPerRun(1, func() {
		var b []byte
		for range values {
			b = appendValue(b, "some text")
		}
	}); n > most {
		t.Errorf("%v allocations for %d values, want %d at most", n, values, most)
	}
}
