package diff_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// Equal parts are one, others stay what they are, and those that differ in what JSON does not show too.
func TestCommon(t *testing.T) {
	label := func(value any) diff.Partial {
		return diff.Partial{
			After:  diff.Part{"metadata": map[string]any{"labels": map[string]any{"team": value}}},
			Fields: []engine.FieldChange{{Path: fieldpath.MakePathOrDie("metadata", "labels", "team"), Kind: engine.Added, To: value}},
		}
	}
	var common diff.Common
	first, again, other := common.Partial(label("a")), common.Partial(label("a")), common.Partial(label("b"))
	if &first.Fields[0] != &again.Fields[0] || fmt.Sprintf("%p", first.After) != fmt.Sprintf("%p", again.After) {
		t.Error("equal parts are kept twice")
	}
	for want, got := range map[string]diff.Partial{"a": again, "b": other} {
		if diff := cmp.Diff(label(want).After, got.After); diff != "" || got.Fields[0].To != want || got.Before != nil {
			t.Errorf("%s (-want +got):\n%s", want, diff)
		}
	}
	whole, fraction := diff.Part{"n": int64(1)}, diff.Part{"n": 1.0}
	if got := []diff.Part{diff.Share(&common, whole), diff.Share(&common, fraction)}; !cmp.Equal(got, []diff.Part{whole, fraction}) {
		t.Errorf("got %#v", got)
	}
	for i := range 12_000 { // more than are kept
		text := fmt.Sprint(i)
		if got := common.Partial(label(text)); got.Fields[0].To != text {
			t.Fatalf("got %v, want %s", got.Fields[0].To, text)
		}
	}
}
