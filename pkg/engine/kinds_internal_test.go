package engine

import (
	"strings"
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

// A name that is longer than one may be, or becomes so in another case, is near to none.
func TestLongNamesAreNearToNone(t *testing.T) {
	for _, name := range []string{strings.Repeat("a", longestName+1), strings.Repeat("\u023a", longestName/2)} {
		if _, ok := near(name, name); ok {
			t.Errorf("%.20q is near to itself", name)
		}
	}
}
