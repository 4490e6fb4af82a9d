package cel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

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
