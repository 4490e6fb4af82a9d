package cel_test

import (
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// What an expression may read of a Secret makes a step confidential, unless it is metadata, kind or type.
func TestReads(t *testing.T) {
	s := newScope(t, cel.Options{Params: true, RequestObjects: true, PatchTypes: true, Extensions: []celgo.EnvOption{celgo.Variable("library", celgo.DynType)}})
	for _, v := range [][2]string{{"key", "object.data.key"}, {"name", "object.metadata.name"}, {"again", "variables.key"}} {
		if err := s.Variable(v[0], v[1]); err != nil {
			t.Fatal(err)
		}
	}
	object, metadata, params := cel.Reads{Object: true, Metadata: true}, cel.Reads{Metadata: true}, cel.Reads{Params: true}
	answers, none := cel.Reads{Answers: true}, cel.Reads{}
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
		"library.Get == 1":                                       answers,
		"library.list.all(x, x.data == object.metadata.name)":    answers,
		"variables.name == ''":                                   none,
		"variables.again == ''":                                  object,
		"variables == variables":                                 {Object: true, Metadata: true, Params: true, Answers: true},
		"[object].map(object, object.kind) == []":                object,
		"['a'].all(object, object == 'a')":                       none,
		"namespaceObject.metadata.name == 'a'":                   none,
	} {
		x, err := s.Condition(expression)
		if err != nil {
			t.Error(err)
			continue
		}
		var traffic cel.Traffic
		traffic.Add(x)
		got := cel.Reads{}
		for of, secret := range map[*bool]cel.Reads{&got.Object: {Object: true}, &got.Metadata: metadata, &got.Params: params, &got.Answers: answers} {
			step := engine.Step{}
			traffic.Mark(&step, secret)
			*of = step.Confidential
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", expression, got, want)
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
		_, m := configuration(t, expression, false)
		compareWrites(t, expression, m, want)
	}
	for expression, want := range map[string]*engine.Writes{
		"JSONPatch{op: 'add', path: '/metadata/labels/a~1b', value: 'c'}":                                               fields("metadata", fields("labels", fields("a/b", literal))),
		"JSONPatch{op: 'add', path: '/a/-', value: object.kind}, JSONPatch{op: 'remove', path: '/b'}":                   fields("a", &engine.Writes{Items: computed, Fields: map[string]*engine.Writes{"-": computed}}, "b", literal),
		"JSONPatch{op: 'copy', from: '/data/a', path: '/b'}":                                                            fields("b", computed),
		"JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey(object.kind), value: 'c'}":                computed,
		"JSONPatch{op: 'add', path: '/a', value: 'c'}, JSONPatch{op: 'add', path: '/a', value: object.kind + 'suffix'}": fields("a", computed),
	} {
		_, m := patch(t, expression)
		compareWrites(t, expression, m, want)
	}
}

func compareWrites(t *testing.T, expression string, m *cel.Expression, want *engine.Writes) {
	t.Helper()
	var traffic cel.Traffic
	traffic.Add(m)
	s := newScope(t, cel.Options{})
	reads, err := s.Condition("has(object.data)")
	if err != nil {
		t.Fatal(err)
	}
	traffic.Add(reads)
	step := engine.Step{}
	traffic.Mark(&step, cel.Reads{Object: true})
	if d := cmp.Diff(want, step.Writes, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", expression, d)
	}
}
