package dialects_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// pick returns one of the choices.
func pick(r *rand.Rand, choices ...string) string { return choices[r.IntN(len(choices))] }

// clusterPolicy is a policy of one rule for ConfigMaps.
func clusterPolicy(name, preconditions, mutate string) string {
	return fmt.Sprintf(`{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": %q}, "spec": {"rules": [{"name": "r",
		"match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}, %s "mutate": %s}]}}`, name, preconditions, mutate)
}

// mutator is one of Gatekeeper's.
func mutator(name, kind, place, value string) string {
	return fmt.Sprintf(`{"apiVersion": "mutations.gatekeeper.sh/v1", "kind": %q, "metadata": {"name": %q}, "spec": {"location": %q,
		"applyTo": [{"groups": [""], "versions": ["v1"], "kinds": ["ConfigMap"]}], "parameters": {"assign": {"value": %s}}}}`, kind, name, place, value)
}

// withRule is a policy with one more rule for ConfigMaps in front of its own.
func withRule(policy, preconditions, mutate string) string {
	return strings.Replace(policy, `"rules": [`, fmt.Sprintf(`"rules": [{"name": "first", "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}, %s "mutate": %s},`,
		preconditions, mutate), 1)
}

// randomPolicy writes to one of few places, so that policies meet there. Some of Kyverno's select labels, which others write.
func randomPolicy(r *rand.Rand, i int) string {
	policy := randomPatch(r, i)
	if r.IntN(4) == 0 {
		policy = strings.Replace(policy, `{"kinds"`, fmt.Sprintf(`{"selector": {"matchLabels": {%q: %q}}, "kinds"`, pick(r, "a", "b"), pick(r, "0", "1", "2")), 1)
	}
	return policy
}

func randomPatch(r *rand.Rand, i int) string {
	name, key, value := fmt.Sprintf("p%02d", i), pick(r, "a", "b", "c", "d"), pick(r, "1", "2", "3")
	wide := pick(r, "labels", "annotations")
	preconditions := pick(r, "", "", "", `"preconditions": {"all": [{"key": "{{request.object.metadata.`+wide+`}}", "operator": "Equals", "value": "x"}]},`)
	switch r.IntN(18) {
	case 0, 1, 2, 3:
		return clusterPolicy(name, preconditions, fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {%q: {%q: %q}}}}`, wide, key, value))
	case 4:
		return clusterPolicy(name, "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {%q: %s}}}`, wide,
			pick(r, `{"a": null}`, `{"$patch": "replace", "e": "1"}`, "null", `{"+(a)": "9", "b": "9"}`, `{"(a)": "1", "c": "7"}`)))
	case 5:
		return clusterPolicy(name, "", fmt.Sprintf(`{"patchStrategicMerge": {"data": {%q: "{{request.object.metadata.%s | to_string(@)}}"}}}`, key, wide))
	case 6:
		return clusterPolicy(name, "", fmt.Sprintf(`{"patchStrategicMerge": {"deep": {"er": {%q: {"x": %q}}, "list": [{"name": %q, "v": {%q: %q}}]}}}`, key, value, key, value, key))
	case 7:
		return clusterPolicy(name, "", pick(r,
			`{"patchesJson6902": "[{\"op\": \"copy\", \"from\": \"/metadata/labels\", \"path\": \"/metadata/annotations\"}]"}`,
			`{"patchesJson6902": "[{\"op\": \"copy\", \"from\": \"/deep\", \"path\": \"/other\"}]"}`,
			`{"patchesJson6902": "[{\"op\": \"move\", \"from\": \"/metadata/annotations\", \"path\": \"/metadata/labels\"}]"}`,
			`{"patchesJson6902": "[{\"op\": \"remove\", \"path\": \"/metadata/labels\"}]"}`))
	case 15:
		return clusterPolicy(name, "", pick(r, fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"finalizers": ["example.com/%s", "example.com/%s"]}}}`, key, value),
			fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"ownerReferences": [{"uid": %q, "name": %q}]}}}`, key, value)))
	case 16:
		return clusterPolicy(name, "", fmt.Sprintf(`{"patchesJson6902": "[{\"op\": \"%s\", \"path\": \"/metadata/finalizers/%s\", \"value\": \"example.com/%s\"}]"}`,
			pick(r, "add", "add", "replace", "remove"), pick(r, "-", "-", "0", "1"), key))
	case 17:
		return pick(r, mutator(name, "Assign", "deep.list[name: "+key+"].v.x", `"`+value+`"`), strings.Replace(mutator(name, "ModifySet", "deep.set", "0"),
			`"assign": {"value": 0}`, fmt.Sprintf(`"operation": %q, "values": {"fromList": [%q, %q]}`, pick(r, "merge", "merge", "prune"), key, value), 1))
	case 14:
		return clusterPolicy(name, "", fmt.Sprintf(`{"patchesJson6902": "[{\"op\": \"%s\", \"path\": \"/%s/%s\", \"value\": %s}]"}`,
			pick(r, "add", "add", "replace", "remove"), pick(r, "data", "metadata/labels", "metadata/annotations", "deep/er/a"), key, pick(r, "true", `\"1\"`, `{}`, `1`)))
	case 8:
		return clusterPolicy(name, "", fmt.Sprintf(`{"patchesJson6902": "[{\"op\": \"add\", \"path\": \"/metadata/labels/%s\", \"value\": \"%s\"}, {\"op\": \"%s\", \"path\": \"/deep/er/%s\", \"value\": {\"y\": 1}}]"}`,
			key, value, pick(r, "add", "replace", "test"), key))
	case 9:
		return clusterPolicy(name, "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {%q: {%q: %q}, "name": %s}}}`, wide, key, value, pick(r, `"c"`, `"renamed"`)))
	case 10:
		return mutator(name, "AssignMetadata", "metadata."+wide+"."+pick(r, "g", "h", key), `"`+value+`"`)
	case 11, 12:
		return mutator(name, "Assign", pick(r, "deep.er."+key+".x", "deep.er."+key, "data."+key, "data", "other.er.z"), pick(r, `"`+value+`"`, `"`+value+`"`, `{"o": "1"}`))
	default:
		return clusterPolicy(name, "", fmt.Sprintf(`{"foreach": [{"list": "['%s', 'b']", "patchStrategicMerge": {"metadata": {%q: {"{{element}}": %q}}}}]}`, key, wide, value))
	}
}

// randomEffect is a random policy whose rules, if they are Kyverno's, change the ConfigMap because of others.
func randomEffect(r *rand.Rand, i int) string {
	if r.IntN(20) == 0 {
		policy := clusterPolicy(fmt.Sprintf("p%02d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"labels": {%q: "{{request.object.data.x}}"}}}}`, pick(r, "a", "b")))
		return strings.Replace(onTarget(policy, "t*"), `["ConfigMap"]`, `["Secret"]`, 1)
	}
	return onTarget(strings.ReplaceAll(randomPolicy(r, i), "request.object", "target"), "t*")
}

// onTarget is a policy whose rules, if they are Kyverno's, change the ConfigMap because of others.
func onTarget(policy, triggers string) string {
	return strings.NewReplacer(`["ConfigMap"]}}]}`, fmt.Sprintf(`["ConfigMap"], "names": [%q]}}]}`, triggers), `"mutate": {`,
		`"mutate": {"targets": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "c"}], `).Replace(policy)
}

// triggers are two ConfigMaps and a Secret.
func triggers(t testing.TB) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		objectOf(t, strings.Replace(configMap, `"c"`, `"t1"`, 1)), objectOf(t, strings.Replace(configMap, `"c"`, `"t2"`, 1)),
		objectOf(t, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t3", "namespace": "n"}, "data": {"x": "aHVudGVyMg=="}}`),
	}
}

// celPolicy is a policy with mutations for ConfigMaps, in one of two languages.
func celPolicy(kind, name, more string, mutations ...string) string {
	group := map[string]string{"MutatingAdmissionPolicy": "admissionregistration.k8s.io/v1", "MutatingPolicy": "policies.kyverno.io/v1alpha1"}[kind]
	return fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}, "spec": {%s "reinvocationPolicy": "Never", "mutations": [%s],
		"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]}}}`,
		group, kind, name, more, strings.Join(mutations, ", "))
}

// celMutation is an apply configuration, or a JSON patch if it is a list.
func celMutation(expression string) string {
	if strings.HasPrefix(expression, "[") {
		return fmt.Sprintf(`{"patchType": "JSONPatch", "jsonPatch": {"expression": %q}}`, expression)
	}
	return fmt.Sprintf(`{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": %q}}`, expression)
}

// randomCELPolicy writes to one of few places, in one of both languages.
func randomCELPolicy(r *rand.Rand, i int) string {
	mutation := func() string {
		names := strings.NewReplacer("WIDE", pick(r, "labels", "annotations"), "KEY", pick(r, "a", "b", "c", "d"), "VALUE", pick(r, "1", "2", "3"))
		return celMutation(names.Replace(pick(r,
			"Object{metadata: Object.metadata{WIDE: {'KEY': 'VALUE'}}}", "Object{metadata: Object.metadata{WIDE: {'KEY': 'VALUE'}}}",
			"Object{data: {'KEY': 'VALUE'}, metadata: Object.metadata{WIDE: {'x': 'VALUE'}}}",
			"Object{metadata: Object.metadata{annotations: object.metadata.labels}}",
			"Object{metadata: Object.metadata{labels: {'KEY': string(object.metadata.?annotations.orValue({}).size())}}}",
			"Object{metadata: Object.metadata{name: 'KEY'}}",
			"Object{data: {'KEY': string(1 / int(object.metadata.labels.a))}}",
			"Object{metadata: Object.metadata{finalizers: ['example.com/KEY']}}",
			"[JSONPatch{op: 'add', path: '/metadata/labels/KEY', value: 'VALUE'}]",
			"[JSONPatch{op: 'remove', path: '/metadata/labels/KEY'}]",
			"[JSONPatch{op: 'add', path: '/metadata/finalizers/-', value: 'example.com/KEY'}]",
			"[JSONPatch{op: 'add', path: '/metadata/finalizers/-', value: 'example.com/KEY'}, JSONPatch{op: 'remove', path: '/metadata/finalizers/VALUE'}]",
			"[JSONPatch{op: 'test', path: '/metadata/labels/a', value: 'VALUE'}, JSONPatch{op: 'replace', path: '/data/KEY', value: 'VALUE'}]",
			"[JSONPatch{op: 'copy', from: '/metadata/labels', path: '/data'}, JSONPatch{op: 'add', path: '/data/KEY', value: 'VALUE'}, JSONPatch{op: 'move', from: '/data/KEY', path: '/data/x~1y'}]",
			"[JSONPatch{op: 'add', path: '/metadata/WIDE', value: {'KEY': 'VALUE'}}, JSONPatch{op: 'add', path: '/metadata/WIDE/VALUE', value: 'x'}]",
			"[JSONPatch{op: 'replace', path: '', value: object}]", "[JSONPatch{op: 'add', path: '/metadata/none/KEY', value: 'x'}]",
			"[JSONPatch{op: 'copy', from: '/metadata/labels', path: '/metadata/annotations'}]",
		)))
	}
	more := pick(r, "", "", `"failurePolicy": "Ignore",`, `"failurePolicy": "Ignore",`, `"failurePolicy": "Ignore",`,
		`"matchConditions": [{"name": "m", "expression": "object.metadata.labels.a == '1'"}],`)
	mutations := []string{mutation()}
	for range []int{0, 0, 0, 1, 1, 3}[r.IntN(6)] {
		mutations = append(mutations, mutation())
	}
	return celPolicy(pick(r, "MutatingAdmissionPolicy", "MutatingPolicy"), fmt.Sprintf("p%02d", i), more, mutations...)
}

func objectOf(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := utilyaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return u
}

// undrafted is a program that copies each state.
type undrafted struct{ engine.Program }

// Evaluate takes no draft.
func (u undrafted) Evaluate(ctx context.Context, t engine.Target, w *engine.World, s engine.Sink) (*unstructured.Unstructured, error) {
	t.Draft = nil
	return u.Program.Evaluate(ctx, t, w, s)
}

// Describe describes the rules of the program.
func (u undrafted) Describe() []engine.Description { return u.Program.(engine.Describer).Describe() }

// Propagates reports what the program does.
func (u undrafted) Propagates() bool {
	q, ok := u.Program.(engine.Propagator)
	return ok && q.Propagates()
}

// Effects are those of the program, without a draft.
func (u undrafted) Effects(ctx context.Context, trigger engine.Target, w *engine.World, s engine.Sink) ([]engine.Effect, error) {
	effects, err := u.Program.(engine.Propagator).Effects(ctx, trigger, w, s)
	for i := range effects {
		effects[i] = undraftedEffect{effects[i]}
	}
	return effects, err
}

type undraftedEffect struct{ engine.Effect }

// Apply takes no draft.
func (u undraftedEffect) Apply(ctx context.Context, subject engine.Target, w *engine.World, s engine.Sink) (*unstructured.Unstructured, error) {
	subject.Draft = nil
	return u.Effect.Apply(ctx, subject, w, s)
}

// evaluated is the change of one object by policies.
func evaluated(t testing.TB, object *unstructured.Unstructured, policies []string, o evaluation.Options) *engine.Change {
	t.Helper()
	return evaluatedBy(t, object, policies, o, func(p engine.Program) engine.Program { return p })
}

func evaluatedBy(t testing.TB, object *unstructured.Unstructured, policies []string, o evaluation.Options, wrap func(engine.Program) engine.Program) *engine.Change {
	t.Helper()
	documents := make([]engine.Document, len(policies))
	for i, text := range policies {
		documents[i] = engine.NewDocument(objectOf(t, text), "")
	}
	var programs []engine.Program
	for _, d := range dialects.All() {
		annotate := len(policies) < 20 // the annotation of what all rules did is written anew for each, up to its limit
		c := engine.Compilation{Limits: engine.DefaultLimits(), Annotate: annotate, Warn: func(engine.CompileError) {}}
		for _, document := range documents {
			if d.Accepts(document.Key.GroupKind) == engine.Policy {
				c.Documents = append(c.Documents, document)
			}
		}
		if len(c.Documents) > 0 {
			program, _ := d.Compile(c) // mutators may contradict each other
			programs = append(programs, wrap(program))
		}
	}
	objects := []*unstructured.Unstructured{object}
	if strings.Contains(policies[0], "targets") {
		objects = append(objects, triggers(t)...)
	}
	s, err := snapshot.Load(engine.Documents(objects...), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &engine.World{Reader: s, Mapper: s.Mapper(), Limits: engine.DefaultLimits(), Memo: &engine.Memo{}}
	var out *engine.Change
	e, source := evaluation.New(programs, w, o), s.Source(engine.Scope{ClusterScoped: true})
	if err := e.Prepare(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	err = e.Run(t.Context(), source, func(c *engine.Change) error {
		if c.Subject.Name == object.GetName() {
			out = c
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if out == nil { // no rule asks for the object
		out = &engine.Change{Subject: engine.KeyOf(object), Before: object, After: object}
	}
	return out
}

// shown is a change as text.
func shown(t testing.TB, c *engine.Change) string {
	t.Helper()
	type step struct {
		Rule    string
		Outcome engine.Outcome
		Fields  []string
		Reason  string
	}
	text := func(fields []engine.FieldChange) (out []string) {
		for _, f := range fields {
			out = append(out, fmt.Sprint(f.Path, f.Kind, f.From, f.To, f.Rule))
		}
		return out
	}
	var steps []step
	for _, s := range c.Steps {
		reason := ""
		if s.Err != nil {
			reason = s.Err.Error()
		}
		steps = append(steps, step{s.Rule.String(), s.Outcome, text(s.Fields), reason})
	}
	out, err := json.MarshalIndent(map[string]any{"after": c.After.Object, "fields": text(c.Fields), "steps": steps}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if c.Shown != nil {
		return string(out) + "\nmay be shown as " + shown(t, c.Shown)
	}
	return string(out)
}

const configMap = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n", "labels": {"a": "0"}},
	"data": {"a": "b"}, "deep": {"er": {"a": {"x": "0"}}, "list": [{"name": "a", "v": {}}]}}`

const plainConfigMap = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n", "labels": {"a": "1"},
	"finalizers": ["example.com/a"]}, "data": {"a": "b"}}`

// A program that changes an object in place does what one does that copies each state, and
// leaves the object that it was given as it was.
func TestDraftsChangeNothingButMemory(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		policy func(r *rand.Rand, i int) string
		seeds  uint64
	}{"patches": {configMap, randomPolicy, 400}, "effects": {configMap, randomEffect, 200}, "CEL": {plainConfigMap, randomCELPolicy, 150}} {
		t.Run(name, func(t *testing.T) {
			changes := 0
			for seed := range c.seeds {
				r := rand.New(rand.NewPCG(seed, 0))
				var policies []string
				for i := range 2 + r.IntN(12) {
					policies = append(policies, c.policy(r, i))
				}
				object := objectOf(t, c.object)
				o := evaluation.Options{Workers: 1, Reasons: seed%2 == 1}
				drafted := evaluated(t, object, policies, o)
				copied := evaluatedBy(t, objectOf(t, c.object), policies, o, func(p engine.Program) engine.Program { return undrafted{p} })
				for i, s := range copied.Steps { // that the server sees no difference in what was written has a reason only with a draft
					if s.Outcome == engine.Unchanged && s.Err == nil && i < len(drafted.Steps) {
						drafted.Steps[i].Err = nil
					}
				}
				if d := cmp.Diff(shown(t, copied), shown(t, drafted)); d != "" {
					t.Fatalf("seed %d, without a draft (-) and with one (+): %s\n%s", seed, d, policies)
				}
				if d := cmp.Diff(objectOf(t, c.object), object); d != "" {
					t.Fatalf("seed %d changes the object that it was given: %s\n%s", seed, d, policies)
				}
				changes += len(drafted.Fields)
			}
			if changes < 2*int(c.seeds) {
				t.Errorf("only %d fields change", changes)
			}
		})
	}
}

// onOnePlace are languages and forms in which each policy writes a field of its own to one map, or
// an element to one list.
func onOnePlace() map[string]func(i int) string {
	out := celOnOnePlace()
	maps.Copy(out, map[string]func(i int) string{
		"strategic merge": func(i int) string {
			return clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"labels": {"l%d": "v"}}}}`, i))
		},
		"rules with targets": func(i int) string {
			return onTarget(clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"labels": {"l%d": "v"}}}}`, i)), "t*")
		},
		"rules that select labels": func(i int) string {
			return strings.Replace(clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"labels": {"l%d": "v"}}}}`, i)),
				`{"kinds"`, `{"selector": {"matchLabels": {"a": "1"}}, "kinds"`, 1)
		},
		"rules that select labels with wildcards": func(i int) string {
			return strings.Replace(clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"labels": {"l%d": "v"}}}}`, i)),
				`{"kinds"`, `{"selector": {"matchLabels": {"a": "?"}}, "kinds"`, 1)
		},
		"rules that select annotations": func(i int) string {
			policy := strings.Replace(clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"annotations": {"l%d": "v"}}}}`, i)),
				`{"kinds"`, `{"annotations": {"a": "?"}, "kinds"`, 1)
			return withRule(policy, "", `{"patchStrategicMerge": {"metadata": {"annotations": {"a": "1"}}}}`)
		},
		"elements of rules with targets": func(i int) string {
			return onTarget(clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchesJson6902": "- {op: add, path: /metadata/finalizers/-, value: example.com/l%d}"}`, i)), "t1")
		},
		"rules that are held back in turn": func(i int) string {
			return withRule(clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"labels": {"l%d": "v"}}}}`, i)),
				`"preconditions": {"all": [{"key": "{{request.object.metadata.name}}", "operator": "Equals", "value": "x"}]},`, `{"patchStrategicMerge": {"data": {"x": "y"}}}`)
		},
		"rules that fail in turn": func(i int) string {
			return withRule(clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"labels": {"l%d": "v"}}}}`, i)),
				"", `{"patchStrategicMerge": {"data": {"x": "{{request.object.metadata.none}}"}}}`)
		},
		"variables": func(i int) string {
			return clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"data": {"l%d": "{{request.object.metadata.name}}"}}}`, i))
		},
		"JSON patches": func(i int) string {
			return clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchesJson6902": "- {op: add, path: /metadata/labels/l%d, value: v}"}`, i))
		},
		"maps in a map": func(i int) string {
			return clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"deep": {"l%d": {"a": "b"}}}}`, i))
		},
		"mutators of metadata": func(i int) string {
			return mutator(fmt.Sprintf("p%04d", i), "AssignMetadata", fmt.Sprintf("metadata.labels.l%d", i), `"v"`)
		},
		"mutators": func(i int) string {
			return mutator(fmt.Sprintf("p%04d", i), "Assign", fmt.Sprintf("data.l%d", i), `"v"`)
		},
		"finalizers": func(i int) string {
			return clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"finalizers": ["example.com/l%d"]}}}`, i))
		},
		"elements of JSON patches": func(i int) string {
			return clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchesJson6902": "- {op: add, path: /metadata/finalizers/-, value: example.com/l%d}"}`, i))
		},
		"elements of JSON patches at the front": func(i int) string {
			return clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchesJson6902": "- {op: add, path: /metadata/finalizers/0, value: example.com/l%d}"}`, i))
		},
		"elements of which two have one name": func(i int) string {
			return clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchesJson6902": "- {op: add, path: /list/-, value: {name: l%d}}"}`, i/2))
		},
		"elements with keys": func(i int) string {
			return clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"ownerReferences": [{"uid": "l%d", "apiVersion": "v1", "kind": "Node", "name": "n"}]}}}`, i))
		},
		"mutators of elements": func(i int) string {
			return mutator(fmt.Sprintf("p%04d", i), "Assign", fmt.Sprintf("list[name: l%d].value", i), `"v"`)
		},
		"mutators of lists": func(i int) string {
			return strings.Replace(mutator(fmt.Sprintf("p%04d", i), "ModifySet", "set", "0"), `"assign": {"value": 0}`, fmt.Sprintf(`"values": {"fromList": ["l%d"]}`, i), 1)
		},
	})
	return out
}

// celOnOnePlace are those of CEL.
func celOnOnePlace() map[string]func(i int) string {
	return map[string]func(i int) string{
		"apply configurations": func(i int) string {
			return celPolicy("MutatingAdmissionPolicy", fmt.Sprintf("p%04d", i), "", celMutation(fmt.Sprintf("Object{metadata: Object.metadata{labels: {'l%d': 'v'}}}", i)))
		},
		"apply configurations of Kyverno": func(i int) string {
			return celPolicy("MutatingPolicy", fmt.Sprintf("p%04d", i), "", celMutation(fmt.Sprintf("Object{metadata: Object.metadata{labels: {'l%d': 'v'}}}", i)))
		},
		"JSON patches of CEL of Kyverno": func(i int) string {
			return celPolicy("MutatingPolicy", fmt.Sprintf("p%04d", i), "", celMutation(fmt.Sprintf("[JSONPatch{op: 'add', path: '/metadata/labels/l%d', value: 'v'}]", i)))
		},
		"JSON patches of CEL": func(i int) string {
			return celPolicy("MutatingAdmissionPolicy", fmt.Sprintf("p%04d", i), "", celMutation(fmt.Sprintf("[JSONPatch{op: 'add', path: '/metadata/labels/l%d', value: 'v'}]", i)))
		},
		"apply configurations and JSON patches of CEL in turn": func(i int) string {
			mutation := "Object{metadata: Object.metadata{labels: {'l%d': 'v'}}}"
			if i%2 == 1 {
				mutation = "[JSONPatch{op: 'add', path: '/metadata/labels/l%d', value: 'v'}]"
			}
			return celPolicy("MutatingAdmissionPolicy", fmt.Sprintf("p%04d", i), "", celMutation(fmt.Sprintf(mutation, i)))
		},
		"elements of apply configurations and JSON patches of CEL in turn": func(i int) string {
			mutation := "Object{metadata: Object.metadata{finalizers: ['example.com/l%d']}}"
			if i%2 == 1 {
				mutation = "[JSONPatch{op: 'add', path: '/metadata/finalizers/-', value: 'example.com/l%d'}]"
			}
			return celPolicy("MutatingPolicy", fmt.Sprintf("p%04d", i), "", celMutation(fmt.Sprintf(mutation, i)))
		},
		"elements of apply configurations": func(i int) string {
			return celPolicy("MutatingAdmissionPolicy", fmt.Sprintf("p%04d", i), "", celMutation(fmt.Sprintf("Object{metadata: Object.metadata{finalizers: ['example.com/l%d']}}", i)))
		},
		"elements of JSON patches of CEL": func(i int) string {
			return celPolicy("MutatingAdmissionPolicy", fmt.Sprintf("p%04d", i), "", celMutation(fmt.Sprintf("[JSONPatch{op: 'add', path: '/metadata/finalizers/-', value: 'example.com/l%d'}]", i)))
		},
	}
}

// written is what each of these policies writes to the object.
var written = regexp.MustCompile(`(?m)^ {2,}"([a-z.]+": "|[a-z.0-9]+/)?l[0-9]+"`)

// crowded is a ConfigMap with many entries where a policy may write.
func crowded(t testing.TB, policy string, entries int) *unstructured.Unstructured {
	t.Helper()
	object := objectOf(t, plainConfigMap)
	labels, data, deep := map[string]any{"a": "1"}, map[string]any{"a": "b"}, map[string]any{}
	finalizers, owners, list, set := []any{"example.com/a"}, []any{}, []any{}, []any{}
	for i := range entries {
		name := fmt.Sprintf("e%d", i)
		labels[name], data[name], deep[name] = "v", "v", map[string]any{"a": "b"}
		finalizers, set = append(finalizers, "example.com/"+name), append(set, name)
		owners = append(owners, map[string]any{"uid": name, "apiVersion": "v1", "kind": "Node", "name": "n"})
		list = append(list, map[string]any{"name": name, "value": "v"})
	}
	metadata := object.Object["metadata"].(map[string]any)
	metadata["labels"], metadata["finalizers"], metadata["ownerReferences"] = labels, finalizers, owners
	object.Object["data"] = data
	for name, value := range map[string]any{"deep": deep, "list": list, "set": set} { // which the schema does not know
		if strings.Contains(policy, name) {
			object.Object[name] = value
		}
	}
	return object
}

// Twice the rules that write to one place take at most 2.2 times as much.
func TestRulesOnOnePlaceAreLinear(t *testing.T) {
	for name, policy := range onOnePlace() {
		for _, reasons := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reasons %t", name, reasons), func(t *testing.T) {
				size := func(n int) int { return allocated(t, objectOf(t, plainConfigMap), policy, n, reasons) }
				size(10) // what is made once
				if once, twice := size(500), size(1000); float64(twice) > 2.2*float64(once) {
					t.Errorf("500 rules allocate %d bytes, 1000 %d: %.1f times as much", once, twice, float64(twice)/float64(once))
				}
			})
		}
	}
}

// withSecrets are rules that change a Secret or use one, and the object that they change. Of it is also found out what may be
// shown.
func withSecrets() map[string]struct {
	object string
	policy func(i int) string
} {
	secret := strings.Replace(plainConfigMap, "ConfigMap", "Secret", 1)
	label := func(name string, i int, value string) string {
		return fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"labels": {"%s%d": %q}}}}`, name, i, value)
	}
	rule := func(i int, preconditions, mutate string) string {
		return clusterPolicy(fmt.Sprintf("p%04d", i), preconditions, mutate)
	}
	bySecret := func(policy string) string {
		return strings.ReplaceAll(onTarget(policy, "t3"), `["ConfigMap"]`, `["Secret"]`)
	}
	isSecret := func(operator string) string {
		return fmt.Sprintf(`"preconditions": {"all": [{"key": "{{request.object.data.x}}", "operator": %q, "value": "aHVudGVyMg=="}]},`, operator)
	}
	return map[string]struct {
		object string
		policy func(i int) string
	}{
		"their own rules": {secret, func(i int) string { return strings.ReplaceAll(rule(i, "", label("l", i, "v")), "ConfigMap", "Secret") }},
		"their own rules and labels that they name": {secret, func(i int) string {
			return strings.ReplaceAll(rule(i, "", label("{{request.object.data.a}}/l", i, "v")), "ConfigMap", "Secret")
		}},
		"rules with targets": {secret, func(i int) string {
			return strings.Replace(onTarget(rule(i, "", label("l", i, "v")), "t*"), `"kind": "ConfigMap", "namespace"`, `"kind": "Secret", "namespace"`, 1)
		}},
		"rules with targets that use them": {plainConfigMap, func(i int) string {
			return bySecret(rule(i, "", label("l", i, "{{request.object.data.x}}")))
		}},
		"rules with targets that they let through": {plainConfigMap, func(i int) string {
			return bySecret(rule(i, isSecret("Equals"), label("l", i, "v")))
		}},
		"rules with targets that they hold back in turn": {plainConfigMap, func(i int) string {
			return bySecret(withRule(rule(i, "", label("l", i, "v")), isSecret("NotEquals"), label("h", i, "v")))
		}},
		"rules with targets that they name": {plainConfigMap, func(i int) string {
			return strings.Replace(bySecret(rule(i, "", label("l", i, "v"))), `"name": "c"`, `"name": "{{request.object.data.x == 'aHVudGVyMg==' && 'c' || 'd'}}"`, 1)
		}},
		"rules with targets and labels that they name": {plainConfigMap, func(i int) string {
			return bySecret(rule(i, "", label("{{request.object.data.x | base64_decode(@)}}/l", i, "v")))
		}},
	}
}

// The same holds for rules that change a Secret or use one.
func TestRulesWithSecretsAreLinear(t *testing.T) {
	for name, c := range withSecrets() {
		for _, reasons := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reasons %t", name, reasons), func(t *testing.T) {
				size := func(n int) int { return allocated(t, objectOf(t, c.object), c.policy, n, reasons) }
				size(10) // what is made once
				if once, twice := size(500), size(1000); float64(twice) > 2.2*float64(once) {
					t.Errorf("500 rules allocate %d bytes, 1000 %d: %.1f times as much", once, twice, float64(twice)/float64(once))
				}
			})
		}
	}
}

// Twice the values of a Secret that one rule replaces take at most 2.2 times as much.
func TestHiddenValuesAreLinear(t *testing.T) {
	allocated := func(n int) uint64 {
		object := objectOf(t, strings.Replace(plainConfigMap, "ConfigMap", "Secret", 1))
		data, values := map[string]any{}, make([]string, n)
		for i := range n {
			name := fmt.Sprintf("k%04d", i)
			data[name], values[i] = "b2xk", fmt.Sprintf(`%q: "bmV3"`, name)
		}
		object.Object["data"] = data
		policy := strings.Replace(clusterPolicy("p", "", fmt.Sprintf(`{"patchStrategicMerge": {"data": {%s}}}`, strings.Join(values, ", "))), "ConfigMap", "Secret", 1)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := evaluated(t, object, []string{policy}, evaluation.Options{Workers: 1})
		runtime.ReadMemStats(&after)
		if len(c.Fields) != n || c.Shown == nil {
			t.Fatalf("%d of %d values change: %s", len(c.Fields), n, shown(t, c))
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(10) // what is made once
	if once, twice := allocated(1000), allocated(2000); float64(twice) > 2.2*float64(once) {
		t.Errorf("1000 values allocate %d bytes, 2000 %d: %.1f times as much", once, twice, float64(twice)/float64(once))
	}
}

// What a rule allocates does not depend on how much there is where it writes. One that copies the place allocates at least a
// pointer for each entry. Of CEL, what is read of an object takes more than what is written.
func TestRulesDoNotCopyTheirPlace(t *testing.T) {
	const entries = 5000
	for name, policy := range onOnePlace() {
		if strings.Contains(policy(0), "expression") {
			continue
		}
		for _, reasons := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reasons %t", name, reasons), func(t *testing.T) {
				ofARule := func(entries int) int {
					size := func(n int) int { return allocated(t, crowded(t, policy(0), entries), policy, n, reasons) }
					return (size(60) - size(20)) / 40
				}
				ofARule(0) // what is made once
				if few, many := ofARule(0), ofARule(entries); many > few+4*entries {
					t.Errorf("a rule allocates %d bytes, and %d where there are %d entries", few, many, entries)
				}
			})
		}
	}
}

// allocated is how many bytes it takes to compile policies and to evaluate them on one object.
func allocated(t *testing.T, object *unstructured.Unstructured, policy func(i int) string, n int, reasons bool) int {
	t.Helper()
	policies := make([]string, n)
	for i := range policies {
		policies[i] = policy(i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := evaluated(t, object, policies, evaluation.Options{Workers: 1, Reasons: reasons})
	runtime.ReadMemStats(&after)
	if found := written.FindAllString(shown(t, c), -1); len(found) < n {
		t.Fatalf("%d of %d rules write: %s", len(found), n, shown(t, c))
	}
	return int(after.TotalAlloc - before.TotalAlloc)
}

// manyMutations is a policy with mutations that write a field of their own to one map, or an element
// to one list. Each uses a variable of its own.
func manyMutations(kind string, n int) string {
	mutations, variables := make([]string, n), make([]string, n)
	for i := range mutations {
		variables[i] = fmt.Sprintf(`{"name": "l%d", "expression": "'l%d'"}`, i, i)
		mutations[i] = celMutation(fmt.Sprintf([]string{
			"Object{metadata: Object.metadata{labels: {variables.l%d: 'v'}}}", "[JSONPatch{op: 'add', path: '/metadata/labels/' + variables.l%d, value: 'v'}]",
			"Object{metadata: Object.metadata{finalizers: ['example.com/' + variables.l%d]}}",
		}[i%3], i))
	}
	return celPolicy(kind, "p", fmt.Sprintf(`"variables": [%s],`, strings.Join(variables, ", ")), mutations...)
}

// Twice the mutations of one policy take at most 2.2 times as much.
func TestMutationsOfAPolicyAreLinear(t *testing.T) {
	for _, kind := range []string{"MutatingAdmissionPolicy", "MutatingPolicy"} {
		t.Run(kind, func(t *testing.T) {
			allocated := func(n int) uint64 {
				policies := []string{manyMutations(kind, n)}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				c := evaluated(t, objectOf(t, plainConfigMap), policies, evaluation.Options{Workers: 1})
				runtime.ReadMemStats(&after)
				if found := written.FindAllString(shown(t, c), -1); len(found) < n {
					t.Fatalf("%d of %d mutations write: %s", len(found), n, shown(t, c))
				}
				return after.TotalAlloc - before.TotalAlloc
			}
			allocated(10) // what is made once
			if once, twice := allocated(450), allocated(900); float64(twice) > 2.2*float64(once) {
				t.Errorf("450 mutations allocate %d bytes, 900 %d: %.1f times as much", once, twice, float64(twice)/float64(once))
			}
		})
	}
}

// Twice the rules that select by labels, of which as many change others than they match as not, take at most 2.2 times
// as much.
func TestRulesThatSelectLabelsAreLinear(t *testing.T) {
	allocated := func(n int) uint64 {
		var policies []string
		for i := range n {
			own := clusterPolicy(fmt.Sprintf("o%d", i), "", `{"patchStrategicMerge": {"metadata": {"labels": {"a": "2"}}}}`)
			for j, policy := range []string{onTarget(strings.Replace(own, `"o`, `"p`, 1), "*"), own} {
				policies = append(policies, strings.Replace(policy, `{"kinds"`, fmt.Sprintf(`{"selector": {"matchLabels": {"l%d": "%d"}}, "kinds"`, i, j), 1))
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		evaluated(t, objectOf(t, plainConfigMap), policies, evaluation.Options{Workers: 1})
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(10) // what is made once
	if once, twice := allocated(200), allocated(400); float64(twice) > 2.2*float64(once) {
		t.Errorf("200 rules of each sort allocate %d bytes, 400 %d: %.1f times as much", once, twice, float64(twice)/float64(once))
	}
}

// Rules whose elements are in a list already find them without a look at all others.
func TestElementsThatAreThereAreLinear(t *testing.T) {
	allocated := func(n int) uint64 {
		policies := make([]string, n)
		for i := range policies {
			policies[i] = clusterPolicy(fmt.Sprintf("p%04d", i), "", fmt.Sprintf(`{"patchStrategicMerge": {"metadata": {"ownerReferences": [{"uid": "e%d", "name": "n"}]}}}`, i))
		}
		object := crowded(t, "", n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if c := evaluated(t, object, policies, evaluation.Options{Workers: 1}); c.Changed() {
			t.Fatalf("changes %d fields", len(c.Fields))
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(10) // what is made once
	if once, twice := allocated(2000), allocated(4000); float64(twice) > 2.2*float64(once) {
		t.Errorf("2000 rules allocate %d bytes, 4000 %d: %.1f times as much", once, twice, float64(twice)/float64(once))
	}
}

// Many mutators that add to one list do not reach the limit of steps: each finds its value without a look at all others.
func TestMutatorsOfOneListTakeFewSteps(t *testing.T) {
	policies := make([]string, 8000)
	for i := range policies {
		policies[i] = onOnePlace()["mutators of lists"](i)
	}
	c := evaluated(t, objectOf(t, plainConfigMap), policies, evaluation.Options{Workers: 1})
	if set, _ := c.After.Object["set"].([]any); len(set) != len(policies) {
		t.Errorf("%d values of %d mutators: %v", len(set), len(policies), c.Steps[0].Err)
	}
}

// BenchmarkSizes compiles and evaluates policies, and twice as many.
func BenchmarkSizes(b *testing.B) {
	sizes := func(name, object string, policy func(i int) string) {
		for _, n := range []int{1000, 2000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				policies := make([]string, n)
				for i := range policies {
					policies[i] = policy(i)
				}
				b.ReportAllocs()
				for b.Loop() {
					evaluated(b, objectOf(b, object), policies, evaluation.Options{Workers: 1})
				}
			})
		}
	}
	for name, policy := range onOnePlace() {
		sizes(name, plainConfigMap, policy)
	}
	for name, c := range withSecrets() {
		sizes("Secrets and "+name, c.object, c.policy)
	}
}
