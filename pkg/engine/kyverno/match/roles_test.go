package match_test

import (
	"context"
	"iter"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
)

// counted counts the listings.
type counted struct {
	engine.Reader
	listings int
}

func (c *counted) List(ctx context.Context, s engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	c.listings++
	return c.Reader.List(ctx, s)
}

func TestRolesAreReadOncePerUser(t *testing.T) {
	b := block(t, map[string]any{"resources": map[string]any{"kinds": []any{"*"}}, "roles": []any{"shop:editor"}})
	reader := &counted{Reader: world(t, []map[string]any{{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": "a", "namespace": "shop"},
		"subjects": []any{map[string]any{"kind": "User", "name": "alice"}},
		"roleRef":  map[string]any{"kind": "Role", "name": "editor"},
	}})}
	w := &engine.World{Reader: reader, Memo: &engine.Memo{}}
	for range 3 {
		for user, want := range map[string]bool{"alice": true, "bob": false} {
			c := &match.Candidate{Target: &engine.Target{}, Context: t.Context(), World: w}
			c.Object = &unstructured.Unstructured{Object: map[string]any{}}
			c.Key.Kind, c.Request.User.Username = "Pod", user
			if err := b.Match(c); (err == nil) != want {
				t.Errorf("%s: %v", user, err)
			}
		}
	}
	if reader.listings != 2 { // of two kinds, for all users
		t.Errorf("%d listings of bindings", reader.listings)
	}
}
