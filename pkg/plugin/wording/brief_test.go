package wording_test

import (
	"errors"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 10050: "10,050", 1234567: "1,234,567"} {
		if got := wording.Number(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for n, want := range map[int]string{1: "1 policy", 2000: "2,000 policies"} {
		if got := wording.PluralNumber(n, "policy"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// reason is an error that knows what is particular to one object.
type reason struct{ error }

func (reason) Brief() string { return "brief" }

func TestBrief(t *testing.T) {
	long := errors.New("long")
	for want, err := range map[string]error{"no reason given": nil, "long": long, "brief": reason{long}} {
		if got := wording.Brief(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
