package structured_test

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/structured"
)

// What the server reads as the same value is not in a patch: the engine has decided what
// changes.
func TestPatchesHoldTheFieldsOfTheChange(t *testing.T) {
	state := func(label, memory string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"label": label, "memory": memory}}
	}
	c := engine.Change{
		Subject: engine.ObjectKey{Version: "v1", Name: "a"}, Before: state("old", "1024Mi"), After: state("new", "1Gi"),
		Fields: []engine.FieldChange{{Path: fieldpath.MakePathOrDie("label"), Kind: engine.Replaced, From: "old", To: "new"}},
	}
	var out bytes.Buffer
	if err := structured.NewPatches(output.Options{Out: &out}).Print(output.Show(output.Evaluated{Change: &c}, false)); err != nil {
		t.Fatal(err)
	}
	const want = `{"object":{"apiVersion":"v1","kind":"","name":"a"},"patch":[{"op":"replace","path":"/label","value":"new"}]}` + "\n"
	if out.String() != want {
		t.Errorf("got %s, want %s", &out, want)
	}
}
