package human_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
)

// dataChange is a change of the data of a ConfigMap.
func dataChange(namespace string, before, after map[string]any) engine.Change {
	of := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": namespace}, "data": data,
		}}
	}
	c := engine.Change{Before: of(before), After: of(after)}
	c.Subject = engine.KeyOf(c.After)
	c.Fields = append(c.Fields, diff.Compare(c.Before.Object, c.After.Object, diff.Type{})...)
	return c
}

// A change of many fields makes no row wider than a reader can follow, and values are
// written as they are.
func TestTableWideRow(t *testing.T) {
	many := map[string]any{}
	for i := range 25 {
		many[fmt.Sprintf("%s-%02d", strings.Repeat("long", 20), i)] = strings.Repeat("v", 100)
	}
	var out bytes.Buffer
	p := outputtest.Printer(human.NewTable(output.Options{Out: &out}, true))
	err := errors.Join(
		p.Print(outputtest.Evaluated(dataChange("shop", nil, map[string]any{"url": "http://x?a=1&b=<2>"}))),
		p.Print(outputtest.Evaluated(dataChange("shop", map[string]any{"a": "1"}, map[string]any{"a": "2", "b": "3"}))),
		p.Print(outputtest.Evaluated(dataChange("shop", map[string]any{"x": "1"}, many))),
		outputtest.End(p, evaluation.Summary{}),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`+data.url="http://x?a=1&b=<2>"`, `data.a: "1" -> "2"; +data.b="3"`, "; and 25 more"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 220 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
