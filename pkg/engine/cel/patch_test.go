package cel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
)

// configuration compiles an apply configuration, and patch a JSON patch, for a Pod.
func configuration(t *testing.T, expression string) (*cel.Scope, *cel.Expression) {
	t.Helper()
	s := newScope(t, cel.Options{})
	m, err := s.ApplyConfiguration(expression)
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

func patch(t *testing.T, operations string) (*cel.Scope, *cel.Expression) {
	t.Helper()
	s := newScope(t, cel.Options{})
	m, err := s.JSONPatch("[" + operations + "]")
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

// mutate applies a mutation to the Pod of input.
func mutate(t *testing.T, s *cel.Scope, m *cel.Expression, replaceAtomic bool) (cel.Result, error) {
	t.Helper()
	in := input(t)
	in.ReplaceAtomic = replaceAtomic
	before := runtime.DeepCopyJSON(in.Object)
	r, err := s.Evaluate(t.Context(), in, cel.MutationBudget).Mutate(m, builtin)
	if diff := cmp.Diff(before, in.Object); diff != "" {
		t.Error("the object is modified:\n" + diff)
	}
	return r, err
}

// outcome is the Pod's spec after a patch, or an error.
type outcome struct {
	spec, err     string
	replaceAtomic bool
}

func (want outcome) check(t *testing.T, s *cel.Scope, m *cel.Expression) {
	t.Helper()
	r, err := mutate(t, s, m, want.replaceAtomic)
	if want.err != "" {
		if err == nil || !strings.Contains(err.Error(), want.err) {
			t.Errorf("got %v, want %s", err, want.err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(t, want.spec), r.Object["spec"]); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestApplyConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		outcome
	}{
		"a new item comes last": {
			expression: "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'side', image: 'side:1'}]}}",
			outcome:    outcome{spec: "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}, {name: side, image: 'side:1'}]}"},
		},
		"an empty list stays one": {
			expression: "Object{spec: Object.spec{initContainers: []}}",
			outcome:    outcome{spec: "{initContainers: [], containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"},
		},
		"atomic values are refused": {
			expression: "Object{spec: Object.spec{nodeSelector: {'a': 'b'}, containers: [Object.spec.containers{name: 'app', args: ['x'], command: ['y']}]}}",
			outcome:    outcome{err: "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args, .spec.containers[0].command, .spec.nodeSelector (a JSONPatch mutation can)"},
		},
		"atomic values are replaced where that is wanted": {
			expression: "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'app', args: ['x']}]}}",
			outcome:    outcome{replaceAtomic: true, spec: "{containers: [{name: app, image: 'app:1', args: [x], env: [{name: A, value: a}]}]}"},
		},
		"an Object in the wrong place": {
			expression: "Object{spec: Object.spec{containers: [Object.spec{name: 'a'}]}}",
			outcome:    outcome{err: `type mismatch: unexpected type name "Object.spec", expected "Object.spec.containers"`},
		},
		"a value that no object holds": {
			expression: "Object{spec: Object.spec{nodeName: timestamp('2020-01-01T00:00:00Z')}}",
			outcome:    outcome{err: "a time.Time is nothing that an object can hold: convert it to a string"},
		},
		"null": {
			expression: "Object{metadata: Object.metadata{labels: {'a': null}}}",
			outcome:    outcome{err: "null is nothing that an Object can hold"},
		},
		"a map whose keys are no texts": {
			expression: "Object{metadata: Object.metadata{labels: {1: 'a'}}}",
			outcome:    outcome{err: "is of type types.Int, not string"},
		},
		// Maps and lists that an expression spells out within one another are not converted, as in an API
		// server.
		"a map that is spelled out within another": {
			expression: "Object{spec: {'securityContext': {'runAsNonRoot': true}}}",
			outcome:    outcome{err: `field "spec": field "securityContext": a {...} or [...] within another one is not converted`},
		},
		"maps in a list that + joins": {
			expression: "Object{spec: Object.spec{containers: object.spec.containers + [{'name': 'side'}]}}",
			outcome:    outcome{err: `field "spec": field "containers": a {...} or [...] within another one is not converted`},
		},
		"maps of a macro below an Object in a list": {
			expression: "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'app', env: ['C'].map(n, {'name': n})}]}}",
			outcome:    outcome{err: `field "containers": element 0: field "env": element 0: a {...} or [...] within another one is not converted`},
		},
		"a list that + joins, within a map": {
			expression: "Object{spec: {'containers': object.spec.containers + [{'name': 'side'}]}}",
			outcome:    outcome{err: `field "spec": field "containers": element 1: a {...} or [...] within another one is not converted`},
		},
		"data of the object may be in maps and lists": {
			expression: "Object{spec: {'containers': object.spec.containers}}",
			outcome:    outcome{spec: "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := configuration(t, c.expression)
			c.check(t, s, m)
		})
	}
}

func TestMutationWithoutSchema(t *testing.T) {
	s, m := configuration(t, "Object{spec: Object.spec{containers: []}}")
	_, err := s.Evaluate(t.Context(), input(t), cel.MutationBudget).Mutate(m, &engine.World{})
	var unsupported *engine.UnsupportedError
	if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "schema of v1 Pod") {
		t.Errorf("got %v", err)
	}
}

func TestJSONPatches(t *testing.T) {
	const unchanged = "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"
	for name, c := range map[string]struct {
		operations string
		outcome
	}{
		"numbers, booleans and null": {
			operations: "JSONPatch{op: 'add', path: '/spec/values', value: {'i': dyn(3), 'd': dyn(1.5), 'w': dyn(2.0), 'b': dyn(true), 'z': dyn(null)}}",
			outcome:    outcome{spec: "{values: {i: 3, d: 1.5, w: 2, b: true, z: null}, containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"},
		},
		"Objects in a list": {
			operations: "JSONPatch{op: 'replace', path: '/spec/containers', value: [Object.spec.containers{name: 'side'}]}",
			outcome:    outcome{spec: "{containers: [{name: side}]}"},
		},
		"a test that does not hold undoes the patch": {
			operations: "JSONPatch{op: 'remove', path: '/spec/containers/0/env'}, JSONPatch{op: 'test', path: '/kind', value: 'Node'}",
			outcome:    outcome{spec: unchanged},
		},
		"a result that is no object": {
			operations: "JSONPatch{op: 'remove', path: '/kind'}",
			outcome:    outcome{err: "the result is no object"},
		},
		"an Object in the wrong place": {
			operations: "JSONPatch{op: 'add', path: '/spec', value: Object.spec{a: Object.b{}}}",
			outcome:    outcome{err: "type mismatch"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := patch(t, c.operations)
			c.check(t, s, m)
		})
	}
}

func TestJSONPatchCopyIsBounded(t *testing.T) {
	operations := strings.Repeat("JSONPatch{op: 'copy', from: '/spec', path: '/spec/a'}, JSONPatch{op: 'copy', from: '/spec', path: '/spec/b'}, ", 40)
	s, m := patch(t, strings.TrimSuffix(operations, ", "))
	_, err := mutate(t, s, m, false)
	if err == nil || !strings.Contains(err.Error(), "exceeding the limit 3145728") {
		t.Errorf("got %v", err)
	}
}
