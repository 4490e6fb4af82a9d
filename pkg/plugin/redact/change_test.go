package redact_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// live is an object as a server keeps it.
func live() map[string]any {
	return map[string]any{
		"kind": "Pod",
		"metadata": map[string]any{
			"name": "web", "uid": "u", "resourceVersion": "1", "generation": int64(1), "creationTimestamp": "t",
			"managedFields": []any{"m"}, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "{}"},
		},
		"status": map[string]any{"phase": "Running"},
	}
}

func TestTrim(t *testing.T) {
	metadata := func(more map[string]any) map[string]any {
		more["name"] = "web"
		return more
	}
	annotations := live()["metadata"].(map[string]any)["annotations"]
	status := fieldpath.MakePathOrDie("status", "phase")
	for _, c := range []struct {
		why    string
		detail redact.Detail
		fields []engine.FieldChange
		want   map[string]any
	}{
		{"stored", redact.Stored, nil, map[string]any{
			"kind": "Pod", "metadata": metadata(map[string]any{"uid": "u", "creationTimestamp": "t", "annotations": annotations}),
			"status": map[string]any{"phase": "Running"},
		}},
		{"configured", redact.Configured, nil, map[string]any{
			"kind": "Pod", "metadata": metadata(map[string]any{"uid": "u", "creationTimestamp": "t", "annotations": annotations}),
		}},
		{"readable", redact.Readable, nil, map[string]any{"kind": "Pod", "metadata": metadata(map[string]any{})}},
		{"what changes is never left out", redact.Readable, []engine.FieldChange{{Path: status}}, map[string]any{
			"kind": "Pod", "metadata": metadata(map[string]any{}), "status": map[string]any{"phase": "Running"},
		}},
	} {
		object := live()
		got := redact.Trim(&unstructured.Unstructured{Object: object}, c.fields, c.detail)
		if diff := cmp.Diff(c.want, got.Object); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.why, diff)
		}
		if diff := cmp.Diff(live(), object); diff != "" {
			t.Errorf("%s: the object is modified:\n%s", c.why, diff)
		}
	}
	if redact.Trim(nil, nil, redact.Readable) != nil {
		t.Error("something is made of no object")
	}
}

// secretChange replaces the value of a Secret, or removes it.
func secretChange(kind engine.ChangeKind) (*engine.Change, *engine.FieldChange) {
	of := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, "data": map[string]any{"password": value},
		}}
	}
	c := &engine.Change{Before: of("YS12ZXJ5LWxvbmctcGFzc3dvcmQ="), After: of("YW5vdGhlci1sb25nLXBhc3N3b3Jk")}
	f := engine.FieldChange{Path: fieldpath.MakePathOrDie("data", "password"), Kind: kind, From: "YS12ZXJ5LWxvbmctcGFzc3dvcmQ=", To: "YW5vdGhlci1sb25nLXBhc3N3b3Jk"}
	if kind == engine.Removed {
		delete(c.After.Object, "data")
		f.To = nil
	}
	c.Fields = []engine.FieldChange{f}
	return c, &c.Fields[0]
}

func TestChangeMasksSecrets(t *testing.T) {
	for _, kind := range []engine.ChangeKind{engine.Replaced, engine.Removed} {
		c, f := secretChange(kind)
		f.Kind = kind
		got := redact.Change(c)
		if from, to := got.Fields[0].From, got.Fields[0].To; from == f.From || to == f.To && to != nil || from == to {
			t.Errorf("%s: shown from %v to %v", kind, from, to)
		}
		if diff := cmp.Diff(got.Before.Object, c.Before.Object); diff == "" {
			t.Errorf("%s: the state before is not masked", kind)
		}
		if diff := cmp.Diff(got.Before.Object, got.After.Object); diff == "" {
			t.Errorf("%s: masked, the states look alike", kind)
		}
	}
}

func TestHolder(t *testing.T) {
	c, f := secretChange(engine.Removed)
	if redact.Holder(c, f) != c.Before {
		t.Error("it is not")
	}
}
