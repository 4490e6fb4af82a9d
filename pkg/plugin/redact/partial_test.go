package redact_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Wherever a name was made of a Secret, what is recorded has no such name, and can be read again: its fields are in its states.
func TestPartialHidesNames(t *testing.T) {
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: "c", UID: "u"}
	before := diff.Part{"data": map[string]any{"kept": "a", "s3cret": "b"}, "s3cret": "c", "metadata": map[string]any{"s3cret": "d", "labels": map[string]any{"a": "1"}}}
	after := diff.Part{"data": map[string]any{"kept": "b"}, "metadata": map[string]any{"annotations": map[string]any{"s3cret": "x"}, "labels": map[string]any{"a": "2"}}}
	field := func(kind engine.ChangeKind, from int, path ...any) engine.FieldChange {
		return engine.FieldChange{Path: fieldpath.MakePathOrDie(path...), Kind: kind, Secret: from > 0, SecretFrom: from}
	}
	for name, c := range map[string]struct {
		fields []engine.FieldChange
		want   []string
	}{
		"of the object":   {[]engine.FieldChange{field(engine.Removed, 1, "s3cret")}, []string{`replaced ["***"]`}},
		"in metadata":     {[]engine.FieldChange{field(engine.Replaced, 0, "metadata", "labels", "a"), field(engine.Removed, 2, "metadata", "s3cret")}, []string{"replaced metadata.labels.a", `replaced metadata["***"]`}},
		"two in metadata": {[]engine.FieldChange{field(engine.Added, 2, "metadata", "annotations"), field(engine.Removed, 2, "metadata", "s3cret")}, []string{`replaced metadata["***"]`}},
		"a map below it":  {[]engine.FieldChange{field(engine.Added, 3, "metadata", "annotations", "s3cret")}, []string{"added metadata.annotations"}},
		"a map":           {[]engine.FieldChange{field(engine.Replaced, 0, "data", "kept"), field(engine.Removed, 2, "data", "s3cret")}, []string{"replaced data"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := redact.Partial(diff.Partial{Before: before, After: after, Fields: c.fields}, key)
			var got []string
			for _, f := range p.Fields {
				got = append(got, string(f.Kind)+" "+engine.PathString(f.Path))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("fields: -want +got:\n%s", diff)
			}
			if err := p.Validate(); err != nil {
				t.Errorf("what is recorded cannot be read: %v", err)
			}
			if err := p.ValidateShown(); err != nil {
				t.Errorf("what is recorded is not shown: %v", err)
			}
		})
	}
}

// What may be secret of a change is masked, whichever way it is known to be; a change without any of it stays as it is.
func TestPartialMasks(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		secret bool
		masked bool
	}{
		"nothing":     {"ConfigMap", false, false},
		"a Secret":    {"Secret", false, true},
		"made of one": {"ConfigMap", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: c.kind}, Version: "v1", Namespace: "shop", Name: "c"}
			value := func(v string) diff.Part { return diff.Part{"data": map[string]any{"pw": v}} }
			p := redact.Partial(diff.Partial{Before: value("a"), After: value("hunter2hunter2"), Fields: []engine.FieldChange{
				{Path: fieldpath.MakePathOrDie("data", "pw"), Kind: engine.Replaced, From: "a", To: "hunter2hunter2", Secret: c.secret},
			}}, key)
			got := p.After["data"].(map[string]any)["pw"] != "hunter2hunter2"
			if got != c.masked || p.Fields[0].Withheld != c.masked || (p.Fields[0].To != "hunter2hunter2") != c.masked {
				t.Errorf("masked: %v, want %v: %+v", got, c.masked, p)
			}
		})
	}
}
