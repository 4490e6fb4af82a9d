package cel_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// notes are Secrets that know of the team, and record what is reported to them.
type notes struct {
	none bool
	told []string
}

func (n *notes) Any() bool            { return !n.none }
func (n *notes) Known(value any) bool { return strings.Contains(fmt.Sprint(value), "blue") }
func (n *notes) Derive(result any, from ...any) {
	if n.Known(from) {
		n.told = append(n.told, fmt.Sprint(result))
	}
}

func TestSecretsAreReported(t *testing.T) {
	s := newScope(t, cel.Options{Params: true})
	for _, v := range [][2]string{{"team", "params.data.team"}, {"label", "'team-' + variables.team"}, {"size", "variables.team.size()"}} {
		if err := s.Variable(v[0], v[1]); err != nil {
			t.Fatal(err)
		}
	}
	for expression, want := range map[string][]string{
		"variables.label":                       {"team-blue"},
		"variables.label.upperAscii()":          {"team-blue", "TEAM-BLUE"},
		"object.metadata.name.upperAscii()":     nil,
		"'n' + string(variables.size)":          nil,
		"params.data.team.substring(9)":         {"index out of range: 9"},
		"object.metadata.name + variables.team": {"webblue"},
	} {
		x, err := s.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		for _, none := range []bool{false, true} {
			in, secrets := input(t), &notes{none: none}
			in.Secrets = secrets
			if none {
				want = nil
			}
			e := s.Evaluate(t.Context(), in, cel.MutationBudget())
			if _, err := e.Value(x); err != nil && !strings.Contains(err.Error(), "out of range") {
				t.Errorf("%s: %v", expression, err)
			}
			if diff := cmp.Diff(want, secrets.told); diff != "" {
				t.Errorf("%s, no Secrets: %t: told (-want +got):\n%s", expression, none, diff)
			}
		}
	}
}

func TestSecretsAreAlwaysWatched(t *testing.T) {
	s := newScope(t, cel.Options{Extensions: []celgo.EnvOption{celgo.Variable("reader", celgo.DynType)}})
	x, err := s.Compile("reader.team.upperAscii()")
	if err != nil {
		t.Fatal(err)
	}
	in, secrets := input(t), &notes{none: true}
	in.Secrets, in.Extra = secrets, map[string]any{"reader": map[string]any{"team": "blue"}}
	if _, err := s.Evaluate(t.Context(), in, cel.MutationBudget()).Value(x); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"BLUE"}, secrets.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestSecretsConcurrently(t *testing.T) {
	s := newScope(t, cel.Options{Params: true})
	if err := s.Variable("team", "params.data.team.upperAscii()"); err != nil {
		t.Fatal(err)
	}
	x, err := s.Compile("[variables.team].map(t, t + '-' + object.metadata.name)")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			in, secrets := input(t), &notes{}
			in.Secrets = secrets
			if _, err := s.Evaluate(t.Context(), in, cel.MutationBudget()).Value(x); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"BLUE"}, secrets.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
	group.Wait()
}
