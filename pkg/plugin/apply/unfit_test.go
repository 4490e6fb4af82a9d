package apply

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
)

// withoutA wants data.a gone, which takes a JSON patch: it no longer fits an object
// without one, and the server says so before it looks at the version.
func withoutA(_ context.Context, live *unstructured.Unstructured, _ string) (*unstructured.Unstructured, error) {
	after := live.DeepCopy()
	unstructured.RemoveNestedField(after.Object, "data", "a")
	return after, nil
}

func (s *fakeServer) drop(field string) {
	s.touch()
	delete(s.live.Object["data"].(map[string]any), field)
}

func TestWriterPlansAgainWhereAPatchDoesNotFitAChangedObject(t *testing.T) {
	for name, c := range map[string]struct {
		faster int // request before which somebody else removes the field
		want   Outcome
		sent   string
	}{
		"in the dry run": {1, Unchanged, "(patch)"},
		"in the write":   {2, Unchanged, "(patch) patch"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFakeServer(t, configMap)
			s.before = only(c.faster, func() error { s.drop("a"); return nil })
			r := mustApply(t, writerTo(s), withoutA)
			checkOutcome(t, r, c.want)
			checkSent(t, s, c.sent)
		})
	}
}

// TestWriterDoesNotRepeatARefusedPatch: the object is the one that the patch
// was made for, so that the refusal stands.
func TestWriterDoesNotRepeatARefusedPatch(t *testing.T) {
	s := newFakeServer(t, configMap)
	s.before = func(int, cluster.Patch) error { return serverError(422, 0) }
	r := mustApply(t, writerTo(s), withoutA)
	checkOutcome(t, r, Failed)
	checkSent(t, s, "(patch)")
}
