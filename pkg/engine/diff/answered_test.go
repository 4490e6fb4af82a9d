package diff_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return u
}

// What counts after a write is what the server made of the fields of the change,
// and not what others have put beside them by the time of the answer.
func TestAnswered(t *testing.T) {
	before := object(t, "{kind: Thing, spec: {gone: 1, size: 1}}")
	after := object(t, "{kind: Thing, spec: {size: 2, labels: {team: a, tier: b}}}")
	change := diff.Between(before, after, diff.Type{})
	for _, tt := range []struct {
		name, answer string
		want         string
		kinds        map[string]engine.ChangeKind
	}{
		{
			"as expected", "{kind: Thing, spec: {size: 2, labels: {team: a, tier: b}}}",
			"{size: 2, labels: {team: a, tier: b}}",
			map[string]engine.ChangeKind{"spec.gone": engine.Removed, "spec.size": engine.Replaced, "spec.labels": engine.Added},
		},
		{
			"with something of others", "{kind: Thing, spec: {size: 2, labels: {team: a, tier: b, mine: x}, more: 1}}",
			"{size: 2, labels: {team: a, tier: b}}",
			map[string]engine.ChangeKind{"spec.gone": engine.Removed, "spec.size": engine.Replaced, "spec.labels": engine.Added},
		},
		{
			"with other values", "{kind: Thing, spec: {size: 3, labels: {team: c}}}",
			"{size: 3, labels: {team: c}}",
			map[string]engine.ChangeKind{"spec.gone": engine.Removed, "spec.size": engine.Replaced, "spec.labels": engine.Added},
		},
		{
			"with the opposite", "{kind: Thing, spec: {gone: 5}}", "{gone: 5}",
			map[string]engine.ChangeKind{"spec.gone": engine.Replaced, "spec.size": engine.Removed},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := change.Answered(object(t, tt.answer))
			read := reread(t, got)
			if err := read.Validate(); err != nil {
				t.Error(err)
			}
			want := object(t, "{kind: Thing, spec: "+tt.want+"}")
			if d := cmp.Diff(want.Object["spec"], got.After["spec"]); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			kinds := map[string]engine.ChangeKind{}
			for _, f := range got.Fields {
				kinds[engine.PathString(f.Path)] = f.Kind
			}
			if d := cmp.Diff(tt.kinds, kinds); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
