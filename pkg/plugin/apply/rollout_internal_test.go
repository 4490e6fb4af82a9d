package apply

import (
	"context"
	"io"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// told keeps whether a Secret was used when it was asked.
type told struct {
	Server
	secret bool
}

func (s *told) Get(ctx context.Context, key engine.ObjectKey) (*unstructured.Unstructured, error) {
	s.secret = engine.UsesSecret(ctx)
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
	}, "spec": map[string]any{"replicas": int64(0)}}}
	u.SetGroupVersionKind(key.GroupVersionKind())
	return u, nil
}

// The request log leaves out what a change has written that was made of a Secret, also while its rollout is waited for.
func TestRolloutsOfSecretsAreNotLogged(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: "shop", Name: "web"}
	for _, secret := range []bool{false, true} {
		server := &told{}
		x := &Executor{Writer: &Writer{Server: server}, ErrOut: io.Discard, Options: Options{Timeout: time.Minute}}
		fields := []engine.FieldChange{{Path: fieldpath.MakePathOrDie("metadata", "labels", "a"), Kind: engine.Added, Withheld: secret}}
		q := &Task{Key: key, Entry: &plan.Entry{Object: key, Partial: diff.Partial{Fields: fields}}}
		if err := x.rollOut(t.Context(), []*Task{q}); err != nil || server.secret != secret {
			t.Errorf("the log is told that a Secret is used: %t; %v", server.secret, err)
		}
	}
}
