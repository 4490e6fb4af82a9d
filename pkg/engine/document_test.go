package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

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
