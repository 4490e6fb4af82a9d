package input

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// accepts is a dialect with a policy kind and an input kind.
func accepts(kind schema.GroupKind) engine.Role {
	switch kind {
	case schema.GroupKind{Group: "example.io", Kind: "Rule"}:
		return engine.Policy
	case schema.GroupKind{Group: "example.io", Kind: "Exception"}:
		return engine.Input
	}
	return engine.Foreign
}

// load returns a line per warning, then one per document.
func load(t *testing.T, s Policies) (string, error) {
	t.Helper()
	var lines []string
	s.Accepts = accepts
	s.Warn = func(origin, text string) { lines = append(lines, "warning "+origin+": "+text) }
	s.Note = func(origin, text string) { lines = append(lines, "note "+origin+": "+text) }
	documents, broken, err := s.Load(context.Background())
	slices.Sort(lines)
	for _, d := range documents {
		lines = append(lines, d.Origin+": "+describe(d))
	}
	return strings.Join(lines, "\n"), errors.Join(append(broken, err)...)
}

func TestPoliciesLoadClusterError(t *testing.T) {
	lost, refused := errors.New("connection lost"), errors.New("forbidden")
	rules, exceptions := &engine.UnreadableError{What: "rules.example.io", Err: refused}, &engine.UnreadableError{What: "exceptions.example.io", Err: refused}
	for _, c := range []struct {
		errs []error
		want string
	}{
		{[]error{lost}, "reading the policies of the cluster: connection lost"},
		{[]error{rules}, "reading the policies of the cluster: cannot read rules.example.io: forbidden"},
		{[]error{rules, exceptions}, "reading the policies of the cluster: cannot read rules.example.io, exceptions.example.io: forbidden"},
	} {
		_, err := load(t, Policies{FromCluster: func(context.Context) ([]engine.Document, []error) { return nil, c.errs }})
		if !errors.Is(err, c.errs[0]) || err.Error() != c.want {
			t.Errorf("error %q, want %q", err, c.want)
		}
	}
}
