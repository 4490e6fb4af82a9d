package kyverno

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// A policy in which any one value is broken is refused, or evaluated without a panic, and
// costs the policy beside it nothing.
func TestBrokenValuesAreReported(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	tried := map[string]bool{} // by place; an element of a list is like another
	for _, file := range files {
		policies, live := readCase(t, strings.TrimSuffix(filepath.Base(file), ".txtar"))
		for _, document := range policies {
			p := document.Object()
			for _, broken := range []any{"{{7*7}}", "{{", "{{ a.{{ b }} ", "{{ 'a }}", "$(../x)", "", nil, int64(1), []any{}, []any{nil}, map[string]any{}} {
				eachBroken(p.Object, broken, func(place string) {
					id := fmt.Sprint(broken, " at ", index.ReplaceAllString(place, ""))
					if tried[id] {
						return
					}
					tried[id] = true
					evaluateBroken(t, fmt.Sprintf("%s: %v at %s", file, broken, place), p, live)
				})
			}
		}
	}
	t.Logf("%d broken policies", len(tried))
}

var index = regexp.MustCompile(`\.\d+`)

// eachBroken puts a value in the place of every other one below a value, one after the
// other.
func eachBroken(value, broken any, try func(place string)) {
	visit := func(place string, old any, set func(any)) {
		set(broken)
		try(place)
		set(old)
		eachBroken(old, broken, func(rest string) { try(place + "." + rest) })
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "kind" || key == "apiVersion" {
				continue
			}
			visit(key, v[key], func(x any) { v[key] = x })
		}
	case []any:
		for i := range v {
			visit(fmt.Sprint(i), v[i], func(x any) { v[i] = x })
		}
	}
}

func evaluateBroken(t *testing.T, name string, p *unstructured.Unstructured, live []*unstructured.Unstructured) {
	t.Helper()
	sound := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "zz-sound"},
		"spec": map[string]any{"rules": []any{map[string]any{
			"name":   "sound",
			"match":  map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"*"}}}}},
			"mutate": map[string]any{"patchStrategicMerge": map[string]any{"metadata": map[string]any{"labels": map[string]any{"sound": "yes"}}}},
		}}},
	}}
	s := &broken{T: t, name: name}
	err := engine.Guard(func() error {
		compiled, err := New().Compile(engine.Compilation{Documents: []engine.Document{engine.NewDocument(p, ""), engine.NewDocument(sound, "")}})
		for _, object := range live {
			s.sound = false
			if _, err := compiled.Evaluate(t.Context(), conformance.TargetOf(object), conformance.NewWorld(), s); err != nil {
				return err
			}
			if !s.sound {
				t.Errorf("%s: the other policy did not run", name)
			}
		}
		for _, problem := range engine.JoinedErrors(err) {
			s.check(problem)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// broken is a Sink that fails on steps that panicked.
type broken struct {
	*testing.T
	name  string
	sound bool // the other policy ran
}

func (*broken) Wants(engine.Outcome) bool { return true }

func (b *broken) Step(s engine.Step) {
	b.sound = b.sound || s.Rule.Policy == "zz-sound"
	b.check(s.Err)
}

func (b *broken) check(err error) {
	var panicked *engine.PanicError
	if errors.As(err, &panicked) {
		b.Errorf("%s: %v", b.name, err)
	}
}
