package cel

import (
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// patchBuiltin converts the kinds of Kubernetes itself.
var patchBuiltin = applyconfigurations.NewTypeConverter(scheme.Scheme)

const patchPod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  containers:
  - {name: app, image: "app:1", env: [{name: A, value: a}]}
`

func parsePatch(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// evaluate is the value of an expression that sees the Pod as object.
func evaluate(t *testing.T, expression string) ref.Val {
	t.Helper()
	env, err := celgo.NewEnv(append([]celgo.EnvOption{celgo.OptionalTypes(), celgo.Variable("object", celgo.DynType)}, patchEnvOptions()...)...)
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := program.Eval(map[string]any{"object": parsePatch(t, patchPod)})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// outcome is the Pod's spec after a patch, or an error.
type outcome struct{ spec, err string }

func check(t *testing.T, want outcome, patched func(map[string]any) (map[string]any, error)) {
	t.Helper()
	object := parsePatch(t, patchPod)
	before := runtime.DeepCopyJSON(object)
	got, err := patched(object)
	if diff := cmp.Diff(before, object); diff != "" {
		t.Error("the object is modified:\n" + diff)
	}
	if want.err != "" {
		if err == nil || !strings.Contains(err.Error(), want.err) {
			t.Errorf("got %v, want %s", err, want.err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsePatch(t, want.spec), got["spec"]); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestApplyConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		atomics    Atomics
		outcome
	}{
		"list items are merged by their keys": {
			expression: "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'app', env: [Object.spec.containers.env{name: 'B', value: 'b'}]}]}}",
			outcome:    outcome{spec: "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}, {name: B, value: b}]}]}"},
		},
		"a new item comes last": {
			expression: "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'side', image: 'side:1'}]}}",
			outcome:    outcome{spec: "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}, {name: side, image: 'side:1'}]}"},
		},
		"an optional field that has no value is not there": {
			expression: "Object{spec: Object.spec{?nodeName: optional.none(), ?hostname: object.metadata.?name}}",
			outcome:    outcome{spec: "{hostname: web, containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"},
		},
		"an empty list stays one": {
			expression: "Object{spec: Object.spec{initContainers: []}}",
			outcome:    outcome{spec: "{initContainers: [], containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"},
		},
		"Objects of a map": {
			expression: "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, image: 'x/' + c.image})}}",
			outcome:    outcome{spec: "{containers: [{name: app, image: 'x/app:1', env: [{name: A, value: a}]}]}"},
		},
		"nothing at all": {
			expression: "Object{}",
			outcome:    outcome{spec: "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"},
		},
		"atomic values are refused": {
			expression: "Object{spec: Object.spec{nodeSelector: {'a': 'b'}, containers: [Object.spec.containers{name: 'app', args: ['x'], command: ['y']}]}}",
			outcome:    outcome{err: "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args, .spec.containers[0].command, .spec.nodeSelector (a JSONPatch mutation can)"},
		},
		"atomic values are replaced where that is wanted": {
			expression: "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'app', args: ['x']}]}}",
			atomics:    ReplaceAtomic,
			outcome:    outcome{spec: "{containers: [{name: app, image: 'app:1', args: [x], env: [{name: A, value: a}]}]}"},
		},
		"a field that the schema does not have": {
			expression: "Object{spec: Object.spec{colour: 'red'}}",
			outcome:    outcome{err: ".spec.colour: field not declared in schema"},
		},
		"an Object in the wrong place": {
			expression: "Object{spec: Object.spec{containers: [Object.spec{name: 'a'}]}}",
			outcome:    outcome{err: `type mismatch: unexpected type name "Object.spec", expected "Object.spec.containers"`},
		},
		"a value of the wrong type": {
			expression: "Object{spec: Object.spec{nodeName: 3}}",
			outcome:    outcome{err: "expected string, got"},
		},
		"a value that no object holds": {
			expression: "Object{spec: Object.spec{nodeName: timestamp('2020-01-01T00:00:00Z')}}",
			outcome:    outcome{err: "a google.protobuf.Timestamp is nothing that an object can hold: convert it to a string"},
		},
		"null": {
			expression: "Object{metadata: Object.metadata{labels: {'a': null}}}",
			outcome:    outcome{err: "null is nothing that an Object can hold"},
		},
		"a map whose keys are no texts": {
			expression: "Object{metadata: Object.metadata{labels: {1: 'a'}}}",
			outcome:    outcome{err: "a map key must be a string, not int"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c.outcome, func(object map[string]any) (map[string]any, error) {
				return merge(object, evaluate(t, c.expression), patchBuiltin, c.atomics)
			})
		})
	}
}

func TestJSONPatches(t *testing.T) {
	const unchanged = "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"
	for name, c := range map[string]struct {
		operations string
		outcome
	}{
		"add": {
			operations: "JSONPatch{op: 'add', path: '/spec/containers/0/args', value: ['x', string(object.kind)]}",
			outcome:    outcome{spec: "{containers: [{name: app, image: 'app:1', args: [x, Pod], env: [{name: A, value: a}]}]}"},
		},
		"replace, move and copy": {
			operations: "JSONPatch{op: 'replace', path: '/spec/containers/0/image', value: 'b'}, JSONPatch{op: 'copy', from: '/spec/containers/0/name', path: '/spec/hostname'}, JSONPatch{op: 'move', from: '/spec/containers/0/env', path: '/spec/volumes'}",
			outcome:    outcome{spec: "{hostname: app, containers: [{name: app, image: b}], volumes: [{name: A, value: a}]}"},
		},
		"numbers, booleans and null": {
			operations: "JSONPatch{op: 'add', path: '/spec/values', value: {'i': dyn(3), 'd': dyn(1.5), 'w': dyn(2.0), 'b': dyn(true), 'z': dyn(null)}}",
			outcome:    outcome{spec: "{values: {i: 3, d: 1.5, w: 2, b: true, z: null}, containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"},
		},
		"an escaped key": {
			operations: "JSONPatch{op: 'add', path: '/spec/' + jsonpatch.escapeKey('a/b~c'), value: 1}",
			outcome:    outcome{spec: "{a/b~c: 1, containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}]}"},
		},
		"an Object": {
			operations: "JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'side'}}",
			outcome:    outcome{spec: "{containers: [{name: app, image: 'app:1', env: [{name: A, value: a}]}, {name: side}]}"},
		},
		"Objects in a list": {
			operations: "JSONPatch{op: 'replace', path: '/spec/containers', value: [Object.spec.containers{name: 'side'}]}",
			outcome:    outcome{spec: "{containers: [{name: side}]}"},
		},
		"a test that holds": {
			operations: "JSONPatch{op: 'test', path: '/kind', value: 'Pod'}, JSONPatch{op: 'remove', path: '/spec/containers/0/env'}",
			outcome:    outcome{spec: "{containers: [{name: app, image: 'app:1'}]}"},
		},
		"a test that does not hold undoes the patch": {
			operations: "JSONPatch{op: 'remove', path: '/spec/containers/0/env'}, JSONPatch{op: 'test', path: '/kind', value: 'Node'}",
			outcome:    outcome{spec: unchanged},
		},
		"a field that is not there is not null": {
			operations: "JSONPatch{op: 'remove', path: '/spec/containers/0/env'}, JSONPatch{op: 'test', path: '/spec/nodeName', value: null}",
			outcome:    outcome{spec: unchanged},
		},
		"nothing to do": {operations: "", outcome: outcome{spec: unchanged}},
		"a path that is not there": {
			operations: "JSONPatch{op: 'remove', path: '/spec/nodeName'}",
			outcome:    outcome{err: "Unable to remove nonexistent key: nodeName"},
		},
		"an operation that does not exist": {
			operations: "JSONPatch{op: 'merge', path: '/spec'}",
			outcome:    outcome{err: "Unexpected kind: merge"},
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
			check(t, c.outcome, func(object map[string]any) (map[string]any, error) {
				out, _, err := applyPatch(object, evaluate(t, "["+c.operations+"]"))
				return out, err
			})
		})
	}
}

func TestJSONPatchWarnings(t *testing.T) {
	for value, want := range map[string]int{
		"[Object.spec.containers{name: 'a'}]": 1, "[[Object.spec.containers{name: 'a'}]]": 1, "{'a': Object.b{}}": 1,
		"Object.spec.containers{name: 'a'}": 0, "Object.a{b: [Object.a.b{}]}": 0, "object.spec.containers": 0,
	} {
		list := evaluate(t, "[JSONPatch{op: 'add', path: '/spec/x', value: "+value+"}]")
		if _, warnings, err := applyPatch(parsePatch(t, patchPod), list); err != nil || len(warnings) != want {
			t.Errorf("%s: %v, %v", value, warnings, err)
		}
	}
}

func TestPatchInvalid(t *testing.T) {
	if _, err := merge(parsePatch(t, patchPod), evaluate(t, "{'spec': 1}"), patchBuiltin, RefuseAtomic); err == nil {
		t.Error("a map is taken for an apply configuration")
	}
	for _, expression := range []string{"JSONPatch{op: 'remove', path: '/spec'}", "[{'op': 'remove', 'path': '/spec'}]"} {
		if _, _, err := applyPatch(parsePatch(t, patchPod), evaluate(t, expression)); err == nil {
			t.Errorf("%s is taken for a JSON patch", expression)
		}
	}
}

// A wrong order comes up by chance alone, so that every expression is asked often.
func TestPatchErrorsAreStable(t *testing.T) {
	for name, c := range map[string]struct{ expression, want string }{
		"fields of an Object": {
			expression: "Object{spec: Object.spec{d: null, b: null, a: null, c: null}}",
			want:       `field "spec": field "a": null is nothing`,
		},
		"keys of a map": {
			expression: "Object{spec: Object.spec{a: {'d': null, 'b': null, 'a': null, 'c': null}}}",
			want:       `field "a": key "a": null is nothing`,
		},
		"keys that are no texts": {
			expression: "Object{spec: Object.spec{a: {dyn(true): 'a', dyn(2u): 'b', dyn(1): 'c'}}}",
			want:       "a map key must be a string, not int",
		},
		"Objects in the wrong place": {
			expression: "Object{spec: Object.spec{a: {'b': dyn(Object.second{}), 'a': dyn(Object.first{})}}}",
			want:       `type mismatch: unexpected type name "Object.first", expected "Object.spec.a", which matches field name path from root Object type` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				_, err := merge(parsePatch(t, patchPod), evaluate(t, c.expression), patchBuiltin, RefuseAtomic)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v", err)
				}
				operation := "[JSONPatch{op: 'add', path: '/spec', value: " + c.expression + "}]"
				if _, _, err := applyPatch(parsePatch(t, patchPod), evaluate(t, operation)); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("as a JSON patch: got %v", err)
				}
			}
		})
	}
}

func TestJSONPatchCopyIsBounded(t *testing.T) {
	operations := strings.Repeat("JSONPatch{op: 'copy', from: '/spec', path: '/spec/a'}, JSONPatch{op: 'copy', from: '/spec', path: '/spec/b'}, ", 40)
	_, _, err := applyPatch(parsePatch(t, patchPod), evaluate(t, "["+strings.TrimSuffix(operations, ", ")+"]"))
	if err == nil || !strings.Contains(err.Error(), "the object grows beyond the limit of 3145728 bytes") {
		t.Errorf("got %v", err)
	}
}

// Each of these grows by a factor of two, sixty times over.
func TestFits(t *testing.T) {
	one := types.DefaultTypeAdapter.NativeToValue([]any{int64(1)})
	for name, double := range map[string]func(ref.Val) ref.Val{
		"lists joined with themselves": func(v ref.Val) ref.Val { return v.(traits.Adder).Add(v) },
		"lists of themselves":          func(v ref.Val) ref.Val { return types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{v, v}) },
		"maps of themselves": func(v ref.Val) ref.Val {
			return types.NewRefValMap(types.DefaultTypeAdapter, map[ref.Val]ref.Val{types.String("a"): v, types.String("b"): v})
		},
	} {
		v := one
		if !fits(double(v)) {
			t.Errorf("%s: two do not fit", name)
		}
		for range 60 {
			v = double(v)
		}
		if fits(v) {
			t.Errorf("%s: 2^60 elements fit", name)
		}
	}
}
