package cel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
			s := environment.NewScope()
			if err := compile(s); err != nil {
				t.Error(err)
				continue
			}
			traffic, got := s.Traffic(), cel.Reads{}
			for of, secret := range map[*bool]cel.Reads{&got.Object: {Object: true}, &got.Metadata: metadata, &got.Params: params} {
				step := engine.Step{}
				traffic.Mark(&step, secret)
				*of = step.Confidential
			}
			if got != want {
				t.Errorf("%s %s: got %+v, want %+v", kind, expression, got, want)
			}
		}
	}
}

func TestWrites(t *testing.T) {
	computed, literal := &engine.Writes{Computed: true}, &engine.Writes{}
	fields := func(names ...any) *engine.Writes {
		w := &engine.Writes{Fields: map[string]*engine.Writes{}}
		for i := 0; i < len(names); i += 2 {
			w.Fields[names[i].(string)] = names[i+1].(*engine.Writes)
		}
		return w
	}
	items := func(w *engine.Writes) *engine.Writes { return &engine.Writes{Items: w} }
	for expression, want := range map[string]*engine.Writes{
		"Object{metadata: Object.metadata{labels: {'a': 'b', 'c': string(object.kind)}}}":                      fields("metadata", fields("labels", fields("a", literal, "c", computed))),
		"Object{metadata: Object.metadata{labels: {object.kind: 'b'}}}":                                        fields("metadata", fields("labels", computed)),
		"Object{spec: Object.spec{?a: optional.of(1), b: [Object.spec.b{name: 'x', c: string(object.kind)}]}}": fields("spec", fields("a", computed, "b", items(fields("name", literal, "c", computed)))),
		"object.kind == 'a' ? Object{spec: Object.spec{a: 1}} : Object{spec: Object.spec{b: -object.x}}":       fields("spec", fields("a", literal, "b", computed)),
		"Object{spec: Object.spec{a: object.spec.a.map(x, x)}}":                                                fields("spec", fields("a", computed)),
	} {
		s, _ := configuration(t, expression, false)
		compareWrites(t, expression, s, want)
	}
	for expression, want := range map[string]*engine.Writes{
		"JSONPatch{op: 'add', path: '/metadata/labels/a~1b', value: 'c'}":                                               fields("metadata", fields("labels", fields("a/b", literal))),
		"JSONPatch{op: 'add', path: '/a/-', value: object.kind}, JSONPatch{op: 'remove', path: '/b'}":                   fields("a", &engine.Writes{Items: computed, Fields: map[string]*engine.Writes{"-": computed}}, "b", literal),
		"JSONPatch{op: 'copy', from: '/data/a', path: '/b'}":                                                            fields("b", computed),
		"JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey(object.kind), value: 'c'}":                computed,
		"JSONPatch{op: 'add', path: '/a', value: 'c'}, JSONPatch{op: 'add', path: '/a', value: object.kind + 'suffix'}": fields("a", computed),
	} {
		s, _ := patch(t, expression)
		compareWrites(t, expression, s, want)
	}
}

func compareWrites(t *testing.T, expression string, s *cel.Scope, want *engine.Writes) {
	t.Helper()
	traffic, step := s.Traffic(), engine.Step{}
	traffic.Mark(&step, cel.Reads{Answers: true})
	if d := cmp.Diff(want, step.Writes, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", expression, d)
	}
}
