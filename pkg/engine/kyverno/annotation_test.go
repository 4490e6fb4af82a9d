package kyverno

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// annotating is a case of testdata/parts/annotate.txtar: what rule r of policy p made of a
// target, and the target with the rule's line.
type annotating struct {
	Live        map[string]any // before the first rule; the same as before where it is left out
	Before      map[string]any
	After       map[string]any
	Subresource string
	Want        map[string]any // nil where the step stays as it is
	Warning     engine.Warning
}

func TestAnnotate(t *testing.T) {
	conformance.EachCase(t, "testdata/parts/annotate.txtar", func(t *testing.T, c *annotating) { c.check(t) })
}

func (c *annotating) check(t *testing.T) {
	if c.Live == nil {
		c.Live = c.Before
	}
	live, before, after := object(c.Live), object(c.Before), object(c.After)
	untouched := []*unstructured.Unstructured{live.DeepCopy(), before.DeepCopy(), after.DeepCopy()}
	subject := engine.Target{Key: engine.KeyOf(before), Object: before, OldObject: live}
	subject.Key.Subresource = c.Subresource
	step := engine.Step{Rule: engine.RuleRef{Policy: "p", Rule: "r"}, Outcome: engine.Changed, After: after}
	got := step
	compare := func(before, after map[string]any) ([]engine.FieldChange, error) {
		return diff.Compare(before, after, diff.Type{EmptyIsAbsent: true}), nil
	}
	if _, err := annotateAppliedPatches(&got, &subject, nil, compare); err != nil {
		t.Fatal(err)
	}
	if c.Want == nil {
		c.Want = c.After
	}
	if diff := cmp.Diff(c.Want, got.After.Object); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var warnings []engine.Warning
	if c.Warning != "" {
		warnings = []engine.Warning{c.Warning}
	}
	if diff := cmp.Diff(warnings, got.Warnings); diff != "" {
		t.Errorf("warnings: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(untouched, []*unstructured.Unstructured{live, before, after}); diff != "" {
		t.Errorf("what was handed in was modified:\n%s", diff)
	}
}

func object(o map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o}
}

// withLines is a target with as many lines, and the error of the last one.
func withLines(n int) (map[string]any, error) {
	target, d := map[string]any{"metadata": map[string]any{"name": "a"}}, &engine.Draft{}
	var err error
	for i := range n {
		var noted map[string]any
		if noted, err = withLine(d, target, fmt.Sprintf("r%05d.p.kyverno.io", i), "added /metadata/labels/team"); err == nil {
			target = noted
		}
		d.Commit()
	}
	return target, err
}

// The lines of many rules are read once: the next one does not read those before it.
func TestLinesAreLinear(t *testing.T) {
	allocations := func(n int) float64 {
		return testing.AllocsPerRun(1, func() {
			if _, err := withLines(n); err != nil {
				t.Error(err)
			}
		})
	}
	if once, twice := allocations(500), allocations(1000); twice > 2.2*once {
		t.Errorf("500 lines take %v allocations, 1000 take %v", once, twice)
	}
}

// What the line of one rule costs is a copy of the maps on the way to it, the text and the fields.
func TestOneLineAllocates(t *testing.T) {
	const most = 56
	metadata := func(labels map[string]any) *unstructured.Unstructured {
		return object(map[string]any{"metadata": map[string]any{"name": "a", "labels": labels}})
	}
	before, after := metadata(map[string]any{"team": "web"}), metadata(map[string]any{"team": "shop"})
	subject := engine.Target{Key: engine.KeyOf(before), Object: before, OldObject: before}
	compare := func(before, after map[string]any) ([]engine.FieldChange, error) {
		return diff.Compare(before, after, diff.Type{}), nil
	}
	n := testing.AllocsPerRun(100, func() {
		step := engine.Step{Rule: engine.RuleRef{Policy: "p", Rule: "r"}, Outcome: engine.Changed, After: after}
		if _, err := annotateAppliedPatches(&step, &subject, nil, compare); err != nil {
			t.Error(err)
		}
	})
	if n > most {
		t.Errorf("%v allocations, want at most %d", n, most)
	} else {
		t.Logf("%v allocations", n)
	}
}

// The annotation does not become longer than an API server stores.
func TestLinesHaveALimit(t *testing.T) {
	target, err := withLines(6000)
	if err == nil || !strings.Contains(err.Error(), "256 KiB") {
		t.Errorf("no error of the limit: %v", err)
	}
	if text, _ := annotations(target)[appliedPatchesAnnotation].(string); len(text) > maxLines || len(text) < maxLines-100 {
		t.Errorf("%d bytes of lines", len(text))
	}
}

// Where a field has another value than in another state of the object, the rest of the two is not compared.
func TestOnlyTheFieldIsCompared(t *testing.T) {
	state := func(value string) map[string]any {
		labels := map[string]any{"a": value}
		for i := range 100 {
			labels[fmt.Sprintf("l%d", i)] = "v"
		}
		return map[string]any{"metadata": map[string]any{"labels": labels}}
	}
	compared := 0
	compare := func(before, after map[string]any) ([]engine.FieldChange, error) {
		for _, one := range []map[string]any{before, after} {
			compared += len(one["metadata"].(map[string]any)["labels"].(map[string]any))
		}
		return diff.Compare(before, after, diff.Type{}), nil
	}
	f := engine.FieldChange{Path: fieldpath.MakePathOrDie("metadata", "labels", "a")}
	for _, value := range []string{"1", "2"} {
		if may, err := mayBeAsIn(state("1"), state(value), f, compare); may != (value == "1") || err != nil {
			t.Errorf("1 and %s may be the same: %t, %v", value, may, err)
		}
	}
	if compared != 4 {
		t.Errorf("%d labels are compared, want 4", compared)
	}
}

// Lines that are set one by one, and one taken back, make the text that reading it again and setting them makes.
func TestLinesAreSetInPlace(t *testing.T) {
	lines, err := readLines("b.p.kyverno.io:   added /b\nx: y\n")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 0))
	for i := range 500 {
		key, value := fmt.Sprintf("r%d.p.kyverno.io", r.IntN(40)), fmt.Sprintf("replaced /%d", r.IntN(1000))
		before := lines.text
		again, err := readLines(before)
		if err != nil {
			t.Fatal(err)
		}
		_, one := lines.set(key, value)
		_, other := again.set(key, value)
		if one != nil || other != nil || lines.text != again.text {
			t.Fatalf("step %d: %q and %q, %v, %v", i, lines.text, again.text, one, other)
		}
		if after := lines.text; r.IntN(3) == 0 && (!lines.as(before) || lines.as(after) != (before == after)) {
			t.Fatalf("step %d: the line %s cannot be taken back", i, key)
		}
	}
}

// What is written without quotes is read as the string that it is.
func TestLinesAreYAML(t *testing.T) {
	var texts []string
	for _, c := range "a1._~-/ ()+:#e" {
		for _, text := range texts {
			texts = append(texts, text+string(c), string(c)+text)
		}
		texts = append(texts, string(c))
		if len(texts) > 20_000 {
			break
		}
	}
	plain := 0
	for _, text := range append(texts, "added /metadata/labels/team", "replaced /spec/containers/0 ", "yes", "n.y", "1e3", "e.", "a #b", "a: b") {
		written := yamlText(text)
		var read map[string]any
		if err := yaml.Unmarshal([]byte(written+": "+written+"\n"), &read); err != nil || read[text] != text {
			t.Fatalf("%q is written as %s, and read as %v, %v", text, written, read, err)
		}
		if written == text {
			plain++
		}
	}
	if plain < 100 {
		t.Errorf("%d of %d texts are written without quotes", plain, len(texts))
	}
}
