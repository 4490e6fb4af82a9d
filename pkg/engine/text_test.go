package engine_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestFew(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a, b, c": {"a", "b", "c"}, "a, b, c and 2 more": {"a", "b", "c", "d", "e"}} {
		if got := engine.Few(names); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for text, want := range map[string]string{"": "", "abc": "abc", "abcd": "abc...", "abé": "ab..."} {
		if got := engine.Shorten(text, 3); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
