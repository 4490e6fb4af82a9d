package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestJoinErrors(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	if err := engine.JoinErrors(nil); err != nil {
		t.Errorf("none: %v", err)
	}
	if err := engine.JoinErrors([]error{a}); !errors.Is(err, a) || err.Error() != "a" {
		t.Errorf("one: %v", err)
	}
	if err := engine.JoinErrors([]error{a, b}); !errors.Is(err, b) || err.Error() != "a; b" {
		t.Errorf("two: %v", err)
	}
}

func TestJoinedErrors(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	reason := fmt.Errorf("rule r: %w", errors.Join(a, b))
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"none":                            {nil, nil},
		"one":                             {a, []string{"a"}},
		"several":                         {errors.Join(a, b), []string{"a", "b"}},
		"joined twice":                    {errors.Join(errors.Join(a, b), a), []string{"a", "b", "a"}},
		"the reasons of one stay with it": {errors.Join(reason, b), []string{"rule r: a\nb", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range engine.JoinedErrors(c.err) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUnknownPolicies(t *testing.T) {
	names := engine.PolicyNames{}
	names.Add("team-labels")
	for name, want := range map[string]bool{"team-labels": true, "team-*": true, "team-label": false, "other*": false} {
		err := names.Check(name)
		if (err == nil) != want || name == "team-label" && !strings.Contains(err.Error(), `did you mean "team-labels"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message quotes what a policy says, which may be long.
func TestLongMessagesAreCut(t *testing.T) {
	long := strings.Repeat("z", 1<<20)
	for want, e := range map[string]*engine.CompileError{
		"p.yaml:1: Assign x: spec.location: invalid location ... is too long": {Origin: "p.yaml:1", Policy: "Assign x", Field: "spec.location", Err: errors.New("invalid location " + long + " is too long")},
		"p.yaml:1: ClusterPolicy ... no such rule":                            {Origin: "p.yaml:1", Policy: "ClusterPolicy " + long, Err: errors.New("no such rule")},
		"p.yaml:1: ClusterPolicy x, rule r: ... unknown field":                {Origin: "p.yaml:1", Policy: "ClusterPolicy x", Rule: "r", Field: long, Err: errors.New("unknown field")},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%.200q, want %q", got, want)
		}
	}
}
