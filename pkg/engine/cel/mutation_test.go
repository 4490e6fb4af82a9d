package cel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

func TestMutation(t *testing.T) {
	s := newScope(t, cel.Options{})
	configuration, err := s.ApplyConfiguration("Object{metadata: Object.metadata{labels: {'a': 'b'}}}", cel.RefuseAtomic)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := s.JSONPatch("[JSONPatch{op: 'add', path: '/metadata/labels/c', value: object.metadata.labels.a}]")
	if err != nil {
		t.Fatal(err)
	}
	in := input(t)
	e := s.Evaluate(t.Context(), in, cel.MutationBudget())
	for _, m := range []*cel.Mutation{configuration, copied} {
		r, err := e.Mutate(m, builtin)
		if err != nil {
			t.Fatal(err)
		}
		e.Replace(r.Object)
		in.Object = r.Object
	}
	want := map[string]any{"app": "web", "a": "b", "c": "b"}
	if diff := cmp.Diff(want, in.Object["metadata"].(map[string]any)["labels"]); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestMutationError(t *testing.T) {
	s := newScope(t, cel.Options{})
	m, err := s.JSONPatch("[JSONPatch{op: 'remove', path: '/spec/nodeName'}]")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Evaluate(t.Context(), input(t), cel.MutationBudget()).Mutate(m, builtin)
	var failed *cel.EvaluationError
	if !errors.As(err, &failed) || failed.Expression != "[JSONPatch{op: 'remove', path: '/spec/nodeName'}]" {
		t.Errorf("got %v", err)
	}
}

func TestMutationWithoutSchema(t *testing.T) {
	s := newScope(t, cel.Options{})
	m, err := s.ApplyConfiguration("Object{spec: Object.spec{containers: []}}", cel.RefuseAtomic)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Evaluate(t.Context(), input(t), cel.MutationBudget()).Mutate(m, nil)
	var unsupported *cel.UnsupportedError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "schema of v1 Pod") {
		t.Errorf("got %v", err)
	}
}

func TestMutationType(t *testing.T) {
	s := newScope(t, cel.Options{})
	var broken *cel.CompileError
	if _, err := s.ApplyConfiguration("{'spec': 1}", cel.RefuseAtomic); !errors.As(err, &broken) {
		t.Errorf("a map as apply configuration: %v", err)
	}
	for _, expression := range []string{"JSONPatch{op: 'remove', path: '/spec'}", "[{'op': 'remove', 'path': '/spec'}]"} {
		if _, err := s.JSONPatch(expression); !errors.As(err, &broken) {
			t.Errorf("%s as JSON patch: %v", expression, err)
		}
	}
}
