package cel_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// What an expression may read of a Secret makes a step confidential, unless it is metadata, kind or type.
func TestReads(t *testing.T) {
	environment, err := cel.NewEnvironment(cel.Options{Params: true, RequestObjects: true, PatchTypes: true})
	if err != nil {
		t.Fatal(err)
	}
	object, metadata, params := cel.Reads{Object: true, Metadata: true}, cel.Reads{Metadata: true}, cel.Reads{Params: true}
	none := cel.Reads{}
	for expression, want := range map[string]cel.Reads{
		"object.metadata.name == 'a'":                            none,
		"object.metadata.labels.all(k, k != object.kind)":        metadata,
		"object.metadata.annotations['a'] == 'b'":                metadata,
		"has(object.metadata.annotations)":                       object,
		"'a' in object.metadata.annotations":                     object,
		"object['type'] == 'Opaque' && object.?type.hasValue()":  metadata,
		"object.metadata == oldObject.metadata":                  object,
		"object.data.key == ''":                                  object,
		"object['da' + 'ta'].key == ''":                          object,
		"has(object.data)":                                       object,
		"oldObject == null":                                      object,
		"request.name == 'a' && request.object.kind == 'Secret'": none,
		"request.oldObject.data.size() == 1":                     object,
		"[request].exists(r, r.object.data.a == '')":             object,
		"params.data.a == ''":                                    params,
		"params.metadata.name == ''":                             none,
		"[object].map(object, object.kind) == []":                object,
		"namespaceObject.metadata.name == 'a'":                   none,
	} {
		for kind, compile := range map[string]func(*cel.Scope) error{
			"condition": func(s *cel.Scope) error { _, err := s.Condition(expression); return err },
			"variable":  func(s *cel.Scope) error { return s.Variable("v", expression) },
		} {
			s := environment.NewScope(nil)
			if err := compile(s); err != nil {
				t.Error(err)
				continue
			}
			policy, got := &cel.Policy{Scope: s}, cel.Reads{}
			for of, secret := range map[*bool]cel.Reads{&got.Object: {Object: true}, &got.Metadata: metadata, &got.Params: params} {
				step := engine.Step{}
				policy.Mark(&step, secret)
				*of = step.Confidential
			}
			if got != want {
				t.Errorf("%s %s: got %+v, want %+v", kind, expression, got, want)
			}
		}
	}
}

func TestWrites(t *testing.T) {
	for expression, want := range map[string][]string{
		"Object{metadata: Object.metadata{labels: {'a': 'b', 'c': string(object.kind)}}}":                      {"metadata labels a", "metadata labels c: computed"},
		"Object{metadata: Object.metadata{labels: {object.kind: 'b'}}}":                                        {"metadata labels: computed"},
		"Object{spec: Object.spec{?a: optional.of(1), b: [Object.spec.b{name: 'x', c: string(object.kind)}]}}": {"spec a: computed", "spec b [] name", "spec b [] c: computed"},
		"object.kind == 'a' ? Object{spec: Object.spec{a: 1}} : Object{spec: Object.spec{b: -object.x}}":       {"spec a", "spec b: computed"},
		"Object{spec: Object.spec{a: object.spec.a.map(x, x)}}":                                                {"spec a: computed"},
	} {
		s, _ := configuration(t, expression)
		compareWrites(t, expression, s, want)
	}
	for expression, want := range map[string][]string{
		"JSONPatch{op: 'add', path: '/metadata/labels/a~1b', value: 'c'}":                                               {"metadata labels a/b"},
		"JSONPatch{op: 'add', path: '/a/-', value: object.kind}, JSONPatch{op: 'remove', path: '/b'}":                   {"a [-]: computed", "b"},
		"JSONPatch{op: 'copy', from: '/data/a', path: '/b'}":                                                            {"b: computed"},
		"JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey(object.kind), value: 'c'}":                {": computed"},
		"JSONPatch{op: 'add', path: '/a', value: 'c'}, JSONPatch{op: 'add', path: '/a', value: object.kind + 'suffix'}": {"a", "a: computed"},
	} {
		s, _ := patch(t, expression)
		compareWrites(t, expression, s, want)
	}
}

func compareWrites(t *testing.T, expression string, s *cel.Scope, want []string) {
	t.Helper()
	policy, step := &cel.Policy{Scope: s}, engine.Step{}
	policy.Mark(&step, cel.Reads{Answers: true})
	var got []string
	for _, w := range step.Writes {
		text := strings.Join(w.Path, " ")
		if w.Computed {
			text += ": computed"
		}
		got = append(got, text)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", expression, d)
	}
}
