package kyverno

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

type fields = map[string]any

func many(n int, format string) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
	}
	return out
}

func wide(n int, key string) fields {
	out := fields{}
	for i := range n {
		out[strings.ReplaceAll(key, "#", fmt.Sprint(i))] = "v"
	}
	return out
}

// places are fields of fields with the same text.
func places(n int, text string) fields {
	out := fields{}
	for i := range n {
		out[fmt.Sprint("f", i)] = fields{"x": fields{"y": text}}
	}
	return out
}

func elements(n int, format string) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = fields{"name": strings.ReplaceAll(format, "#", fmt.Sprint(i)), "v": "x"}
	}
	return out
}

// Rules whose parts multiply, or are long, end within bounds of memory: with a result or
// as failed steps that name the limit. Each took minutes, or more memory than there is,
// where only expressions had a budget.
func TestHostileRules(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	patch := func(p any) fields { return fields{"patchStrategicMerge": p} }
	conditions := func(key any, operator string, value any) fields {
		return fields{"preconditions": fields{"all": []any{fields{"key": key, "operator": operator, "value": value}}}, "mutate": patch(fields{"data": fields{"x": "y"}})}
	}
	operations := func(n int, format string) fields {
		return fields{"patchesJson6902": lines(n, format)}
	}
	for name, rule := range map[string]fields{
		"alternatives of a condition":   {"mutate": patch(fields{"data": fields{"(text)": strings.Repeat("*b|", 100_000) + "b", "x": "y"}})},
		"wildcards for labels":          {"mutate": patch(fields{"metadata": fields{"(labels)": wide(5_000, "*#*b")}})},
		"existence of elements":         {"mutate": patch(fields{"spec": fields{"(l)": []any{fields{"^(x)": []any{fields{"y": "z"}}, "name": "b*"}}}})},
		"elements by elements":          {"mutate": patch(fields{"spec": fields{"l": anchored(8_000)}})},
		"elements without anchors":      {"mutate": patch(fields{"spec": fields{"l": elements(8_000, "other#")}})},
		"finalizers":                    {"mutate": patch(fields{"metadata": fields{"finalizers": many(8_000, "other#")}})},
		"a long value in each element":  {"mutate": patch(fields{"spec": fields{"l": []any{fields{"(name)": "*", "long": text}}}})},
		"a long variable in each":       {"mutate": patch(fields{"spec": fields{"l": []any{fields{"(name)": "*", "long": "{{ request.object.data.text }}"}}}})},
		"members among members":         conditions("{{ request.object.metadata.finalizers }}", "AnyIn", many(8_000, "other#*")),
		"a long key among members":      conditions("{{ request.object.data.text }}", "AnyIn", many(8_000, "*b#")),
		"a long key in alternatives":    conditions("{{ request.object.data.text }}", "Equals", "*"+text[1:]+"b"),
		"equal lists":                   conditions("{{ request.object.spec.l }}", "Equals", "{{ request.object.spec.l }}"),
		"many parts of a version":       conditions("1.2.3-"+strings.Repeat("a.", 500_000)+"a", "GreaterThan", "1.0.0"),
		"operations on a wide map":      {"mutate": operations(8_000, "- {op: add, path: /data/n#, value: v}\n")},
		"operations on a long list":     {"mutate": operations(8_000, "- {op: add, path: /spec/l/0, value: {name: n#}}\n")},
		"copies of a long text":         {"mutate": operations(5_000, "- {op: copy, from: /data/text, path: /data/n#}\n")},
		"copies of copies":              {"mutate": operations(60, "- {op: copy, from: /spec, path: /spec/s#}\n")},
		"padded lists":                  {"mutate": operations(2_000, "- {op: add, path: /x#"+strings.Repeat("/999", 100)+", value: v}\n")},
		"a long text for each element":  foreach(fields{"patchesJson6902": "- {op: add, path: \"/data/n{{ elementIndex }}\", value: \"{{ request.object.data.text }}\"}"}),
		"the object for each element":   foreach(fields{"patchStrategicMerge": fields{"data": fields{"n{{ elementIndex }}": "x{{ request.object }}"}}}),
		"the object in each field":      {"mutate": patch(fields{"spec": places(400, "{{ request.object.spec.l }}")})},
		"the object in each item":       {"mutate": patch(fields{"spec": fields{"x": many(400, "{{ request.object.spec.l }}")}})},
		"lists for each element":        foreach(fields{"patchStrategicMerge": fields{"spec": fields{"n{{ elementIndex }}": "{{ request.object.spec.l }}"}}}),
		"a series of short expressions": foreach(fields{"patchStrategicMerge": fields{"data": fields{"n": "{{ length(request.object.data.text) }}"}}}),
		"an overlay of elements":        {"mutate": fields{"overlay": fields{"spec": fields{"l": elements(8_000, "other#")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			full := fields{"name": "r", "match": fields{"any": []any{fields{"resources": fields{"kinds": []any{"Thing"}}}}}}
			for key, value := range rule {
				full[key] = value
			}
			live := &unstructured.Unstructured{Object: fields{
				"apiVersion": "example.com/v1", "kind": "Thing",
				"metadata": fields{"name": "a", "labels": wide(5_000, "label#"), "finalizers": many(8_000, "finalizer#")},
				"spec":     fields{"l": elements(4_000, "e#")}, "data": fields{"text": text},
			}}
			testHostileRule(t, full, live)
		})
	}
}

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return b.String()
}

func anchored(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = fields{"(name)": fmt.Sprint("other", i), "w": "x"}
	}
	return out
}

func foreach(patch fields) fields {
	patch["list"] = "request.object.spec.l"
	return fields{"mutate": fields{"foreach": []any{patch}}}
}

func testHostileRule(t *testing.T, rule fields, live *unstructured.Unstructured) {
	t.Helper()
	const mostMemory, netOfTime = 512 << 20, 30 * time.Second
	policy := &unstructured.Unstructured{Object: fields{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": fields{"name": "p"}, "spec": fields{"rules": []any{rule}},
	}}
	compiled, err := New().Compile(engine.Compilation{Documents: []engine.Document{engine.NewDocument(policy, "")}})
	if err != nil {
		t.Fatal(err)
	}
	var memory runtime.MemStats
	began := time.Now()
	s := &lastStep{}
	changed, err := compiled.Evaluate(t.Context(), conformance.TargetOf(live), conformance.NewWorld(), s)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&memory) // HeapSys is what the heap ever was
	if took := time.Since(began); took > netOfTime || memory.HeapSys > mostMemory {
		t.Errorf("it takes %s and %d MiB", took, memory.HeapSys>>20)
	}
	var limit *engine.LimitError
	if s.last.Outcome == engine.Failed && !errors.As(s.last.Err, &limit) {
		t.Errorf("it fails: %v", s.last.Err)
	}
	if _, err := engine.NewBudget(t.Context()).Measure(changed.Object); err != nil {
		t.Errorf("the object cannot be measured: %v", err)
	}
}

// lastStep keeps the last step.
type lastStep struct{ last engine.Step }

func (*lastStep) Wants(engine.Outcome) bool { return true }

func (*lastStep) NotMatched(engine.RuleList) {}

func (s *lastStep) Step(step engine.Step) { s.last = step }
