// Package tier says how much a run of the tests tries. There are three tiers:
// go test -short (seconds), what a push needs (make test), and everything, which
// runs at night (make test-all). A law is tested in the tier of a push; what is
// left to the night is repetition: more seeds, more places of the same law.
package tier

import (
	"os"
	"testing"
)

// All reports whether everything is tried: the environment variable TEST_ALL is set.
func All() bool { return os.Getenv("TEST_ALL") != "" }

// Pick returns how often something is tried: all times at night, and as often as a
// push needs otherwise.
func Pick(push, all int) int {
	if All() {
		return all
	}
	return push
}

// Night skips a test of what another test keeps on a push; kept is the name of that test.
func Night(t testing.TB, kept string) {
	t.Helper()
	if !All() {
		t.Skipf("runs with TEST_ALL=1; on a push its law is kept by %s", kept)
	}
}

// NotShort skips a test with go test -short.
func NotShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes longer than go test -short is for")
	}
}
