package selector_test

import (
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

func TestMatchWildcard(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "a/b", true},
		{"**", "", true},
		{"?", "", false},
		{"?", "é", true},
		{"??", "é", false},
		{"?*", "", false},
		{"?*", "a", true},
		{"a", "a", true},
		{"a", "b", false},
		{"a", "ab", false},
		{"a*", "a", true},
		{"*a", "ba", true},
		{"*a", "ab", false},
		{"a*c", "abbbc", true},
		{"a*c", "abbb", false},
		{"*:latest", "nginx:latest", true},
		{"*/*:?.?", "reg/app:1.2", true},
		{"*ab", "aab", true},
		{"*aab*", "aaab", true},
		{"a*b*c", "a-b-b-c", true},
		{"a*b?c", "a-b-bxc", true},
		{"*é?", "aéb", true},
		{"[a]", "a", false},
		{`\*`, "*", false},
		{"?", "\xff", true},
		{"\xff*", "\xffa", true},
		{"corp.reg.com/*", "corp.reg.com/nginx", true},
	} {
		if got := selector.MatchWildcard(c.pattern, c.text); got != c.want {
			t.Errorf("Match(%q, %q) is %t", c.pattern, c.text, got)
		}
	}
}

// Only what is searched for at each place of a string is limited.
func TestCheckWildcard(t *testing.T) {
	long := strings.Repeat("é?", 501)
	for pattern, sound := range map[string]bool{"": true, "*?*": true, long + "*": true, "*" + long[:1000] + "*" + long[:1000]: true, "*" + long: false, "a*" + long + "*c": false} {
		if err := selector.CheckWildcard(pattern); (err == nil) != sound || !sound && selector.MatchWildcard(pattern, "a"+long+"c") {
			t.Errorf("CheckWildcard of %d bytes: %v, want sound: %t", len(pattern), err, sound)
		}
	}
}
