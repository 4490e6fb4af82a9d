package engine

import (
	"testing"
)

// The mistakes of a distance are letters that are wrong, missing, too many or exchanged.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "", 3}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "ac", 1}, {"ac", "abc", 1}, {"abc", "acb", 1}, {"ab", "ba", 1}, {"ca", "abc", 3}, {"exce", "exec", 1}, {"kitten", "sitting", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
