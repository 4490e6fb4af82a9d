package variables

import (
	"errors"
	"strings"
	"testing"
)

// An expression may be as long as a policy is, and its error is shown for each object.
func TestResolveErrorIsShort(t *testing.T) {
	long := strings.Repeat("a/../", 100_000)
	err := &ResolveError{Expression: "path_canonicalize('" + long + "')", Path: "/data/" + long, Err: errors.New("too long")}
	got := err.Error()
	if len(got) > 3*maxQuoted || !strings.HasPrefix(got, "failed to resolve path_canonicalize('a/../") || !strings.HasSuffix(got, ": too long") {
		t.Errorf("%d bytes: %.3000s", len(got), got)
	}
}
