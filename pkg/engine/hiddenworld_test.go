package engine_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

type worldKey struct{}

// perContext reads another object under each context.
type perContext struct{ engine.Reader }

func (perContext) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	name, _ := ctx.Value(worldKey{}).(string)
	return &unstructured.Unstructured{Object: map[string]any{"kind": key.Kind, "metadata": map[string]any{"name": name}}}, nil
}

// Variants are evaluated side by side, each with what is there beside it: the view that hides repeats the answers of its own.
func TestWatchedRepeatsItsOwnAnswers(t *testing.T) {
	real, hiding := (&engine.World{Reader: perContext{}}).Watched()
	contexts := map[string]context.Context{}
	for _, name := range []string{"a", "b"} {
		contexts[name] = engine.WithOwnAnswers(context.WithValue(t.Context(), worldKey{}, name))
		if _, err := real.Reader.Get(contexts[name], engine.ObjectKey{Name: "c"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, ctx := range contexts {
		u, err := hiding.Reader.Get(ctx, engine.ObjectKey{Name: "c"})
		if err != nil || u.GetName() != name {
			t.Errorf("under %s the answer is %v, %v", name, u, err)
		}
	}
}
