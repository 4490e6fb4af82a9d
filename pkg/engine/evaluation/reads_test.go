package evaluation

import (
	"context"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// listing is a Reader that is asked and not heard.
type listing struct{ engine.Reader }

func (listing) List(context.Context, engine.Selection) iter.Seq2[*unstructured.Unstructured, error] {
	return nil
}

// nothing answers nothing.
type nothing struct{}

func (nothing) Raw(context.Context, string, string, []byte) ([]byte, error) { return nil, nil }

// What rules read and the run changes is outdated, however it was read; nothing that a Secret chose is named.
func TestOutdatedReads(t *testing.T) {
	key := func(kind, namespace, name string) engine.ObjectKey {
		return engine.ObjectKey{GroupKind: schema.GroupKind{Kind: kind}, Namespace: namespace, Name: name}
	}
	for name, c := range map[string]struct {
		read func(*engine.World)
		want []string
	}{
		"an object":   {func(w *engine.World) { w.Noted(key("ConfigMap", "shop", "a")) }, []string{"ConfigMap shop/a"}},
		"another one": {func(w *engine.World) { w.Noted(key("ConfigMap", "shop", "b")) }, nil},
		"one that a Secret chose": {func(w *engine.World) {
			w.NoteSecret()
			raw(t, w, "/api/v1/namespaces/shop/configmaps/a")
		}, nil},
		"a list": {func(w *engine.World) { w.Reader.List(t.Context(), engine.Selection{Kind: "ConfigMap"}) }, []string{"the list of ConfigMap"}},
		"a list of another namespace": {func(w *engine.World) {
			w.Reader.List(t.Context(), engine.Selection{Kind: "ConfigMap", Namespace: "bank"})
		}, nil},
		"a path":           {func(w *engine.World) { raw(t, w, "/api/v1/namespaces/shop/configmaps/a") }, []string{"ConfigMap shop/a"}},
		"a path of a list": {func(w *engine.World) { raw(t, w, "/api/v1/namespaces/shop/configmaps?limit=5") }, []string{"the list of ConfigMap in shop"}},
		"paths of others": {func(w *engine.World) {
			raw(t, w, "/api/v1/pods")
			raw(t, w, "/version")
			raw(t, w, "/api/v1/namespaces/bank/configmaps/a")
		}, nil},
		"what many read is named once": {func(w *engine.World) {
			raw(t, w, "/api/v1/configmaps")
			w.Reader.List(t.Context(), engine.Selection{Kind: "ConfigMap"})
		}, []string{"the list of ConfigMap"}},
	} {
		t.Run(name, func(t *testing.T) {
			var r reads
			c.read(r.observe(&engine.World{Reader: listing{}, Raw: nothing{}}).Watched())
			r.noteChange(key("ConfigMap", "shop", "a"))
			if diff := cmp.Diff(c.want, r.outdated()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func raw(t *testing.T, w *engine.World, path string) {
	t.Helper()
	if _, err := w.Raw.Raw(t.Context(), "GET", path, nil); err != nil {
		t.Error(err)
	}
}
