package celpatch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/celpatch"
)

func TestApplyConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		merge      celpatch.Merge
		want       string // the Pod's spec
		err        string
	}{
		"list items are merged by their keys": {
			expression: "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'app', env: [Object.spec.containers.env{name: 'B', value: 'b'}]}]}}",
			want:       "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}, {name: B, value: b}]}]}",
		},
		"a new item comes last": {
			expression: "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'side', image: 'side:1'}]}}",
			want:       "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}, {name: side, image: 'side:1'}]}",
		},
		"an optional field that has no value is not there": {
			expression: "Object{spec: Object.spec{?nodeName: optional.none(), ?hostname: object.metadata.?name}}",
			want:       "{hostname: web, containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}",
		},
		"an empty list stays one": {
			expression: "Object{spec: Object.spec{initContainers: []}}",
			want:       "{initContainers: [], containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}",
		},
		"Objects of a map": {
			expression: "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, image: 'x/' + c.image})}}",
			want:       "{containers: [{name: app, image: 'x/app:1', env: [{name: A, value: a}]}]}",
		},
		"nothing at all": {
			expression: "Object{}",
			want:       "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}",
		},
		"atomic values are refused": {
			expression: "Object{spec: Object.spec{nodeSelector: {'a': 'b'}, containers: [Object.spec.containers{name: 'app', args: ['x'], command: ['y']}]}}",
			err:        "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args, .spec.containers[0].command, .spec.nodeSelector (a JSONPatch mutation can)",
		},
		"atomic values are replaced where that is wanted": {
			expression: "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'app', args: ['x']}]}}",
			merge:      celpatch.ReplaceAtomic,
			want:       "{containers: [{name: app, image: 'app:1', args: [x], env: [{name: A, value: a}]}]}",
		},
		"a field that the schema does not have": {
			expression: "Object{spec: Object.spec{colour: 'red'}}",
			err:        ".spec.colour: field not declared in schema",
		},
		"an Object in the wrong place": {
			expression: "Object{spec: Object.spec{containers: [Object.spec{name: 'a'}]}}",
			err:        `type mismatch: unexpected type name "Object.spec", expected "Object.spec.containers"`,
		},
		"a value of the wrong type": {
			expression: "Object{spec: Object.spec{nodeName: 3}}",
			err:        "expected string, got",
		},
		"a value that no object holds": {
			expression: "Object{spec: Object.spec{nodeName: timestamp('2020-01-01T00:00:00Z')}}",
			err:        "a google.protobuf.Timestamp is nothing that an object can hold: convert it to a string",
		},
		"null": {
			expression: "Object{metadata: Object.metadata{labels: {'a': null}}}",
			err:        "null is nothing that an Object can hold",
		},
		"a map whose keys are no texts": {
			expression: "Object{metadata: Object.metadata{labels: {1: 'a'}}}",
			err:        "a map key must be a string, not int",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(t, celpatch.Options{})
			m, err := s.ApplyConfiguration(c.expression, c.merge)
			if err != nil {
				t.Fatal(err)
			}
			check(t, s, m, outcome{want: c.want, err: c.err})
		})
	}
}

// outcome is a Pod's spec after a mutation, or an error.
type outcome struct{ want, err string }

func check(t *testing.T, s *celpatch.Scope, m *celpatch.Mutation, o outcome) {
	t.Helper()
	in := input(t)
	before := runtime.DeepCopyJSON(in.Object)
	r, err := s.Evaluate(t.Context(), in, celpatch.MutationBudget()).Mutate(m, builtin)
	if diff := cmp.Diff(before, in.Object); diff != "" {
		t.Error("the object is modified:\n" + diff)
	}
	if o.err != "" {
		var failed *celpatch.EvaluationError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), o.err) {
			t.Errorf("got %v, want %s", err, o.err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(t, o.want), r.Object["spec"]); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestAnApplyConfigurationNeedsASchema(t *testing.T) {
	s := newScope(t, celpatch.Options{})
	m, err := s.ApplyConfiguration("Object{spec: Object.spec{containers: []}}", celpatch.RefuseAtomic)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Evaluate(t.Context(), input(t), celpatch.MutationBudget()).Mutate(m, nil)
	var unsupported *celpatch.UnsupportedError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "schema of v1 Pod") {
		t.Errorf("got %v", err)
	}
}

func TestJSONPatches(t *testing.T) {
	const unchanged = "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"
	for name, c := range map[string]struct {
		operations string
		want       string // the Pod's spec
		err        string
	}{
		"add": {
			operations: "JSONPatch{op: 'add', path: '/spec/containers/0/args', value: ['x', string(object.kind)]}",
			want:       "{containers: [{name: app, image: 'app:1', args: [x, Pod], env: [{name: A, value: a}]}]}",
		},
		"replace, move and copy": {
			operations: "JSONPatch{op: 'replace', path: '/spec/containers/0/image', value: 'b'}, JSONPatch{op: 'copy', from: '/spec/containers/0/name', path: '/spec/hostname'}, JSONPatch{op: 'move', from: '/spec/containers/0/env', path: '/spec/volumes'}",
			want:       "{hostname: app, containers: [{name: app, image: b}], volumes: [{name: A, value: a}]}",
		},
		"numbers, booleans and null": {
			operations: "JSONPatch{op: 'add', path: '/spec/values', value: {'i': dyn(3), 'd': dyn(1.5), 'w': dyn(2.0), 'b': dyn(true), 'z': dyn(null)}}",
			want:       "{values: {i: 3, d: 1.5, w: 2, b: true, z: null}, containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}",
		},
		"an escaped key": {
			operations: "JSONPatch{op: 'add', path: '/spec/' + jsonpatch.escapeKey('a/b~c'), value: 1}",
			want:       "{a/b~c: 1, containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}",
		},
		"an Object": {
			operations: "JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'side'}}",
			want:       "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}, {name: side}]}",
		},
		"Objects in a list": {
			operations: "JSONPatch{op: 'replace', path: '/spec/containers', value: [Object.spec.containers{name: 'side'}]}",
			want:       "{containers: [{name: side}]}",
		},
		"a test that holds": {
			operations: "JSONPatch{op: 'test', path: '/kind', value: 'Pod'}, JSONPatch{op: 'remove', path: '/spec/containers/0/env'}",
			want:       "{containers: [{name: app, image: 'app:1'}]}",
		},
		"a test that does not hold undoes the patch": {
			operations: "JSONPatch{op: 'remove', path: '/spec/containers/0/env'}, JSONPatch{op: 'test', path: '/kind', value: 'Node'}",
			want:       unchanged,
		},
		"a field that is not there is not null": {
			operations: "JSONPatch{op: 'remove', path: '/spec/containers/0/env'}, JSONPatch{op: 'test', path: '/spec/nodeName', value: null}",
			want:       unchanged,
		},
		"nothing to do": {operations: "", want: unchanged},
		"a path that is not there": {
			operations: "JSONPatch{op: 'remove', path: '/spec/nodeName'}",
			err:        "Unable to remove nonexistent key: nodeName",
		},
		"an operation that does not exist": {
			operations: "JSONPatch{op: 'merge', path: '/spec'}",
			err:        "Unexpected kind: merge",
		},
		"a result that is no object": {
			operations: "JSONPatch{op: 'remove', path: '/kind'}",
			err:        "the result is no object",
		},
		"an Object in the wrong place": {
			operations: "JSONPatch{op: 'add', path: '/spec', value: Object.spec{a: Object.b{}}}",
			err:        "type mismatch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(t, celpatch.Options{})
			expression := "[" + c.operations + "]"
			if c.operations == "" {
				expression = "object.kind == 'Node' ? [JSONPatch{op: 'remove', path: '/spec'}] : []"
			}
			m, err := s.JSONPatch(expression)
			if err != nil {
				t.Fatal(err)
			}
			check(t, s, m, outcome{want: c.want, err: c.err})
		})
	}
}

func TestOlderServersArePointedOut(t *testing.T) {
	for value, want := range map[string]int{
		"[Object.spec.containers{name: 'a'}]": 1, "[[Object.spec.containers{name: 'a'}]]": 1, "{'a': Object.b{}}": 1,
		"Object.spec.containers{name: 'a'}": 0, "Object.a{b: [Object.a.b{}]}": 0, "object.spec.containers": 0,
	} {
		s := newScope(t, celpatch.Options{})
		m, err := s.JSONPatch("[JSONPatch{op: 'add', path: '/spec/x', value: " + value + "}]")
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Evaluate(t.Context(), input(t), celpatch.MutationBudget()).Mutate(m, builtin)
		if err != nil || len(r.Warnings) != want {
			t.Errorf("%s: %v, %v", value, r.Warnings, err)
		}
	}
}

func TestAMutationMustEvaluateToAPatch(t *testing.T) {
	s := newScope(t, celpatch.Options{})
	var broken *celpatch.CompileError
	if _, err := s.ApplyConfiguration("{'spec': 1}", celpatch.RefuseAtomic); !errors.As(err, &broken) {
		t.Errorf("a map as apply configuration: %v", err)
	}
	if _, err := s.JSONPatch("JSONPatch{op: 'remove', path: '/spec'}"); !errors.As(err, &broken) {
		t.Errorf("one operation as JSON patch: %v", err)
	}
}
