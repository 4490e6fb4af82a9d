package plugin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
)

// nestedCalls are calls of functions on what calls of other functions make of a Secret.
func nestedCalls(t *testing.T, random *rand.Rand, n int) []string {
	t.Helper()
	functions := jmespathFunctions(t)
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		calls = append(calls, jmespathCalls(name, functions[name])...)
	}
	out := make([]string, n)
	for i := range out {
		inner, outer := calls[random.IntN(len(calls))], calls[random.IntN(len(calls))]
		out[i] = strings.NewReplacer("s.text", inner, "to_number(s.number)", inner).Replace(outer)
		if random.IntN(3) == 0 {
			out[i] = strings.ReplaceAll(out[i], "s.number", calls[random.IntN(len(calls))])
		}
	}
	return out
}

// TestSecretsInNestedCalls is TestSecretsByOrigin for functions of functions, in places that are drawn: rules that write to the same places,
// and set back what others made, are among them.
func TestSecretsInNestedCalls(t *testing.T) {
	tier.Night(t, "TestSecretsByOrigin")
	const calls, places = 150, 3 // of each policy, and of each call
	policies := 3
	if *everyMutation {
		policies = 100
	}
	dir := t.TempDir()
	world := writeSecretsFile(t, dir, "world.yaml", secretWorld())
	random := rand.New(rand.NewPCG(1, 7)) //nolint:gosec // the same each time
	made := 0
	for i := range policies {
		var rules []map[string]any
		for n, call := range nestedCalls(t, random, calls) {
			all := append(kyvernoPlaces(call), kyvernoValues(n, call)...)
			for range places {
				rules = append(rules, maps.Clone(all[random.IntN(len(all))]))
			}
		}
		policy := writeSecretsFile(t, dir, "policy.json", kyvernoPolicy("p", rules))
		if checkNested(t, i, policy, world) {
			made++
		}
	}
	if 2*made < policies {
		t.Errorf("%d of %d policies make something of the Secret", made, policies)
	}
}

// nestedRuns are commands that are given policies and a world, and perhaps flags; the first ones show most.
func nestedRuns(dir, policy, world string, flags ...string) [][]string {
	none := filepath.Join(dir, "none.json")
	var out [][]string
	for _, args := range [][]string{
		{"preview", "--explain", "-o", "json"},
		{"preview", "--explain", "-o", "summary"},
		{"explain", "configmap/c", "-n", "default"},
		{"preview", "--explain", "-o", "diff"},
		{"compare", "--with", none, "--variants=0", "-o", "json"},
		{"preview", "--report", "markdown=-"},
		{"explain", "configmap/c", "-n", "default", "-o", "json"},
		{"preview", "-o", "json-patch"},
		{"compare", "--with", none, "--variants=20"},
		{"preview", "--report", "html=-"},
		{"compare", "--with", policy, "--variants=10", "-o", "yaml"},
		{"preview", "--report", "sarif=-"},
		{"preview", "--explain", "-o", "wide", "-v=8"},
		{"explain", "configmap/c", "-n", "default", "-o", "diff"},
		{"preview", "--report", "junit=-"},
		{"preview", "-o", "manifests"},
		{"preview", "--report", "github=-"},
		{"preview", "--report", "policyreport=-"},
		{"compare", "--with", none, "--variants=0", "-o", "markdown"},
	} {
		out = append(out, slices.Concat(args, []string{"-p", policy, "-f", world, "-q"}, flags))
	}
	convert := []string{"convert", "--unproved", "--variants=5", "-p", policy, "-f", world}
	return append(out, append(convert, flags...), []string{"policies", "-p", policy})
}

// checkNested runs one of the commands, another one for each i, and fails if it shows a Secret. It reports whether
// the policies make something of the Secret.
func checkNested(t *testing.T, i int, policy, world string, flags ...string) (makes bool) {
	t.Helper()
	dir := filepath.Dir(policy)
	secrets := newDisguises(secretText, secretNumber, secretOlder)
	_, shown := secretsRun(t, append([]string{"preview", "-p", policy, "-f", world, "-q", "-o", "json", "--show-secrets"}, flags...)...)
	writeSecretsFile(t, dir, "none.json", kyvernoPolicy("none", []map[string]any{{"mutate": fields{"patchStrategicMerge": fields{"data": fields{"x": "other"}}}}}))
	runs := nestedRuns(dir, policy, world, flags...)
	args := runs[i%len(runs)]
	_, out := secretsRun(t, args...)
	if found := secrets.in(unpacked(t, strings.ReplaceAll(out, dir, ""))); found != "" || out == "" {
		t.Errorf("set %d, %v: %s", i, args, found)
	}
	return secrets.in(shown) != ""
}

// nestedCELCalls are calls of functions on what calls of other functions make of a Secret, that have a value.
func nestedCELCalls(t *testing.T, trial *celTrial, random *rand.Rand) func() string {
	t.Helper()
	calls, _ := celCalls(t, trial)
	draw := func() string { return calls[random.IntN(len(calls))] }
	forms := []string{"%s", "dyn(%s)", "string(%s)", "dyn(%s)[0]", "string(dyn(%s))", "[%s].map(e, e)[0]", "[%s, 'x'].filter(e, true)[0]"}
	return func() string {
		for {
			inner := fmt.Sprintf(forms[random.IntN(len(forms))], "("+draw()+")")
			outer := strings.ReplaceAll(draw(), "variables.s.text", inner)
			if random.IntN(3) == 0 {
				outer = strings.ReplaceAll(outer, "variables.s.number", inner)
			}
			if _, works := trial.patches(t.Context(), outer); works && strings.Contains(outer, inner) {
				return outer
			}
		}
	}
}

// celPlaces are a policy's parts that put what an expression makes somewhere.
func celPlaces(n int, call string) []fields {
	patch := func(expression string) fields {
		return fields{"mutations": []any{fields{"patchType": "JSONPatch", "jsonPatch": fields{"expression": expression}}}}
	}
	apply := func(expression string) fields {
		return fields{"mutations": []any{fields{"patchType": "ApplyConfiguration", "applyConfiguration": fields{"expression": expression}}}}
	}
	text := "string(dyn(variables.v))"
	escaped := `jsonpatch.escapeKey(` + text + `)`
	with := func(of fields, variables ...string) fields {
		of["variables"] = append([]string{call}, variables...)
		return of
	}
	condition := func(expression string) fields {
		of := patch(celPatch(fmt.Sprint("/data/p", n), "'x'"))
		of["matchConditions"] = []any{fields{"name": "m", "expression": expression}}
		return with(of)
	}
	return []fields{
		with(patch(celPatch(fmt.Sprint("/data/p", n), "variables.v"))),
		with(patch(celPatch(fmt.Sprint("/data/p", n), "variables.w")), "[variables.v, variables.v]"),
		with(patch(celPatch(fmt.Sprint("/data/p", n), "variables.x.k")), "{'k': variables.v}", "{'k': dyn(variables.w.k), 'n': dyn(size("+text+"))}"),
		with(patch(`[JSONPatch{op: "add", path: "/data/" + ` + escaped + `, value: "x"}]`)),
		with(patch(`[JSONPatch{op: "add", path: "/metadata/labels/" + ` + escaped + `, value: "x"}]`)),
		with(patch(`[JSONPatch{op: "remove", path: "/data/" + ` + escaped + `}]`)),
		with(patch(`[JSONPatch{op: "test", path: "/data/a", value: variables.v}]`)),
		with(patch(`[JSONPatch{op: "copy", from: "/data/" + ` + escaped + `, path: "/data/z"}]`)),
		with(patch(`[JSONPatch{op: ` + text + `, path: "/data/z", value: "x"}]`)),
		with(patch(`[JSONPatch{op: "add", path: ` + text + `, value: "x"}]`)),
		with(patch(celPatch("/metadata/resourceVersion", text))),
		with(patch(celPatch("/metadata/finalizers", "["+text+"]"))),
		with(apply(fmt.Sprintf(`Object{data: {"p%d": %s}}`, n, text))),
		with(apply(`Object{data: {` + text + `: "x"}}`)),
		with(apply(`Object{metadata: Object.metadata{labels: {"l": ` + text + `, ` + text + `: "m"}}}`)),
		with(apply(`Object{metadata: Object.metadata{generateName: ` + text + `}}`)),
		condition(text + ` == "x"`), condition(`int(` + text + `) > 0`), condition(`{'x': true}[` + text + `]`), condition(`url(` + text + `).getHost() != ""`),
	}
}

// celPolicy is a policy of a kind on the ConfigMap c that has the Secret as variables.s, and its binding if it has one.
func celPolicy(kyverno bool, name string, of fields) string {
	from := "params.stringData"
	if kyverno {
		from = "resource.Get('v1', 'secrets', 'default', 's').stringData"
	}
	return celPolicyFrom(kyverno, name, of, from)
}

// celPolicyFrom is celPolicy, with the expression of variables.s.
func celPolicyFrom(kyverno bool, name string, of fields, from string) string {
	variables := []any{fields{"name": "s", "expression": from}}
	for i, expression := range of["variables"].([]string) {
		variables = append(variables, fields{"name": string("vwx"[i]), "expression": expression})
	}
	spec := fields{
		"failurePolicy": "Ignore", "variables": variables, "mutations": of["mutations"],
		"matchConstraints": fields{"resourceRules": []any{fields{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"configmaps"}, "resourceNames": []any{"c"},
		}}},
	}
	if conditions, ok := of["matchConditions"].([]any); ok {
		spec["matchConditions"] = conditions
	}
	policy := fields{"apiVersion": "policies.kyverno.io/v1beta1", "kind": "MutatingPolicy", "metadata": fields{"name": name}, "spec": spec}
	if kyverno {
		text, _ := json.Marshal(policy) // plain values
		return string(text)
	}
	policy["apiVersion"], policy["kind"] = "admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"
	spec["paramKind"], spec["reinvocationPolicy"] = fields{"apiVersion": "v1", "kind": "Secret"}, "Never"
	text, _ := json.Marshal(policy) // plain values
	binding, _ := json.Marshal(fields{
		"apiVersion": policy["apiVersion"], "kind": "MutatingAdmissionPolicyBinding", "metadata": fields{"name": name},
		"spec": fields{"policyName": name, "paramRef": fields{"name": "s", "namespace": "default", "parameterNotFoundAction": "Deny"}},
	})
	return string(text) + "\n---\n" + string(binding)
}

// TestSecretsInNestedCELCalls is TestSecretsInNestedCalls for the policies in CEL.
func TestSecretsInNestedCELCalls(t *testing.T) {
	tier.Night(t, "TestSecretsByOrigin")
	const calls, places = 60, 2 // of each set of policies, and of each call
	sets := 2
	if *everyMutation {
		sets = 60
	}
	dir := t.TempDir()
	world := writeSecretsFile(t, dir, "world.yaml", secretWorld())
	for _, kyverno := range []bool{true, false} {
		random := rand.New(rand.NewPCG(2, 7)) //nolint:gosec // the same each time
		draw := nestedCELCalls(t, newCELTrial(t, kyverno), random)
		made := 0
		for i := range sets {
			var policies []string
			for n := range calls {
				all := celPlaces(n, draw())
				for range places {
					policies = append(policies, celPolicy(kyverno, fmt.Sprint("p", len(policies)), all[random.IntN(len(all))]))
				}
			}
			policy := writeSecretsFile(t, dir, "policy.json", strings.Join(policies, "\n---\n"))
			if checkNested(t, i, policy, world) {
				made++
			}
		}
		if 2*made < sets {
			t.Errorf("Kyverno %t: %d of %d sets make something of the Secret", kyverno, made, sets)
		}
	}
}
