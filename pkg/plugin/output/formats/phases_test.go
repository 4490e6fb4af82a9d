package formats_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
)

// A watch that writes has no summary before it writes: what it is about to change is shown by Flush, once.
func TestWhatIsWrittenWithoutASummaryIsShown(t *testing.T) {
	state := func(level string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "data": map[string]any{"level": level},
		}}
	}
	before, after := state("debug"), state("info")
	field := engine.FieldChange{Path: fieldpath.MakePathOrDie("data", "level"), Kind: engine.Replaced, From: "debug", To: "info"}
	change := &engine.Change{Subject: engine.KeyOf(before), Target: engine.Target{Key: engine.KeyOf(before), Object: before}, Before: before, After: after, Fields: []engine.FieldChange{field}}
	for format, want := range map[string]string{formats.Diff: "+  level: info", formats.Summary: "~ ConfigMap c  1 field"} {
		var out bytes.Buffer
		p, err := formats.NewWrites(format, output.Options{Out: &out, Writes: true}, &formats.Reports{}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Print(output.Evaluated{Change: change}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := output.Flush(p); err != nil {
				t.Fatal(err)
			}
			if strings.Count(out.String(), want) != 1 {
				t.Errorf("%s:\n%s", format, out.String())
			}
		}
	}
}
