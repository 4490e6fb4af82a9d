package wildcard

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "any/thing at all", true},
		{"nginx", "nginx", true},
		{"nginx", "nginx:1", false},
		{"*:latest", "reg.io/nginx:latest", true},
		{"*:latest", "reg.io/nginx:latest-1", false},
		{"a*b*c", "a--b--b--c", true},
		{"a*b*c", "a--c--b", false},
		{"v?", "v1", true},
		{"v?", "v10", false},
		{"?", "é", true},
		{"?", "", false},
		{"**a", "a", true},
	} {
		if got := Match(c.pattern, c.text); got != c.want {
			t.Errorf("Match(%q, %q) = %v, want %v", c.pattern, c.text, got, c.want)
		}
	}
}

// A backtracking matcher needs longer than the age of the universe for this.
func TestMatchIsBoundedOnManyStars(t *testing.T) {
	if Match(strings.Repeat("a*", 60)+"b", strings.Repeat("a", 600)) {
		t.Error("matched text that lacks the last character")
	}
}
