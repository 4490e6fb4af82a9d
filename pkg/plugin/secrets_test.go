package plugin_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// The values of the Secret. No five letters or digits of one, in either direction, stand anywhere else: no
// time of day, date or port has five digits above 5.
const (
	secretText   = `zQx7Wv9Kp3Jm5"<Ty8`
	secretNumber = "8697968779"
	secretOlder  = "oVbN4rFq9Hw"
	secretPath   = "/api/v1/namespaces/default/secrets/s"
)

type fields = map[string]any

func secretWorld() string {
	text, _ := json.Marshal(fields{"text": secretText, "number": secretNumber})
	applied, _ := json.Marshal(`{"apiVersion":"v1","kind":"Secret","stringData":{"text":"` + secretOlder + `"}}`)
	object := func(kind, name, rest string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": %q, "metadata": {"name": %q, "namespace": "default"%s`, kind, name, rest)
	}
	return strings.Join([]string{
		object("Secret", "s", `, "annotations": {"kubectl.kubernetes.io/last-applied-configuration": `+string(applied)+`}}, "data": `+string(text)+`}`),
		object("ConfigMap", "c", `, "labels": {"app": "web"}}, "data": {"a": "b"}}`),
		object("ConfigMap", "target", `}, "data": {"a": "b"}}`),
		`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}`,
	}, "\n---\n")
}

// secretParts are what five letters or digits of a value, or eight of its base64 or digest, look like.
var secretParts = func() []string {
	var out []string
	add := func(text string, size int) {
		for text = plainLetters(text); len(text) >= size; text = text[1:] {
			out = append(out, text[:size])
		}
	}
	for _, v := range []string{secretText, secretNumber, secretOlder} {
		reversed := []byte(v)
		slices.Reverse(reversed)
		add(v, 5)
		add(string(reversed), 5)
		add(fmt.Sprintf("%x", sha256.Sum256([]byte(v))), 8)
		for before := range 3 { // what stands before it decides which letters encode it
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + v))
			add(encoded[4:len(encoded)-4], 8)
		}
	}
	return out
}()

var separators = regexp.MustCompile(`[^a-z0-9]+`)

func plainLetters(text string) string { return separators.ReplaceAllString(strings.ToLower(text), "") }

// numbers that a run makes: digests, IDs, directories, ports, times, processes in the head of a line of the log.
var runNumbers = regexp.MustCompile(`Test[A-Za-z]+\d+|\b[0-9a-f]{8,}\b|127\.0\.0\.1:\d+|\d\d:\d\d:\d\d[.\d]*( +\d+ [a-z_]+\.go:\d+\])?|klog.*?\]|delay="[0-9.]+m?s"`)

// secretIn returns what a string shows of the Secret, and what stands around it.
func secretIn(text string) string {
	plain := plainLetters(runNumbers.ReplaceAllStringFunc(text, func(number string) string {
		if strings.Contains(secretNumber, number) {
			return number
		}
		return " "
	}))
	for _, part := range secretParts {
		if i := strings.Index(plain, part); i >= 0 {
			return plain[max(0, i-60):min(len(plain), i+60)]
		}
	}
	return ""
}

// packed is what a report packs, as gzip in base64.
var packed = regexp.MustCompile(`H4sI[A-Za-z0-9+/]{20,}=*`)

// unpacked is a string with what it packs in clear.
func unpacked(t *testing.T, text string) string {
	t.Helper()
	return packed.ReplaceAllStringFunc(text, func(encoded string) string {
		compressed, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(plain)
	})
}

// secretsRun runs the program on files of a directory.
func secretsRun(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	defer klog.CaptureState().Restore()
	klog.SetLogger(logr.Discard()) // as Main does
	code, out, errOut := runCommand(t, args...)
	klog.Flush()
	return code, out + errOut
}

// kyvernoPolicy has a rule for each mutate block, all of which see the Secret as sec, and what is in it as s.
func kyvernoPolicy(name string, rules []map[string]any) string {
	for i, r := range rules {
		r["name"] = fmt.Sprint("r", i)
		r["match"] = fields{"any": []any{fields{"resources": fields{"kinds": []any{"ConfigMap"}, "names": []any{"c"}}}}}
		more, _ := r["context"].([]any)
		r["context"] = append([]any{
			fields{"name": "sec", "apiCall": fields{"urlPath": secretPath}}, fields{"name": "s", "variable": fields{"jmesPath": "sec.data"}},
		}, more...)
	}
	text, _ := json.Marshal(fields{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": fields{"name": name}, "spec": fields{"rules": rules}})
	return string(text)
}

// kyvernoPlaces are rules that put what an expression makes in each place.
func kyvernoPlaces(expr string) []map[string]any {
	v := "{{ " + expr + " }}"
	patch := fields{"patchStrategicMerge": fields{"data": fields{"x": "y"}}}
	entry := func(source fields) []any { source["name"] = "z"; return []any{source} }
	target := func(of fields) map[string]any {
		all := fields{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "target"}
		maps.Copy(all, of)
		return fields{"mutate": fields{"targets": []any{all}, "patchStrategicMerge": fields{"data": fields{"t": v}}}}
	}
	metadata := func(of fields) map[string]any {
		return fields{"mutate": fields{"patchStrategicMerge": fields{"metadata": of}}}
	}
	use := fields{"patchStrategicMerge": fields{"data": fields{"x": "{{ z }}"}}}
	return []map[string]any{
		{"mutate": fields{"patchStrategicMerge": fields{"data": fields{"f": "a " + v + " z", "{{ to_string(" + expr + ") }}": "x"}}}},
		metadata(fields{"labels": fields{"l": v}}), metadata(fields{"labels": fields{"l-" + v: "x"}}), metadata(fields{"finalizers": []any{v}}),
		metadata(fields{"resourceVersion": v}), metadata(fields{"creationTimestamp": v}), metadata(fields{"generateName": v}), metadata(fields{"uid": v}),
		metadata(fields{"name": v}), metadata(fields{"namespace": v}), metadata(fields{"deletionTimestamp": v}), metadata(fields{"ownerReferences": []any{fields{"name": v, "uid": v, "kind": v, "apiVersion": "v1"}}}),
		metadata(fields{v: fields{"a": "b"}}),
		{"preconditions": fields{"all": []any{fields{"key": v, "operator": "NotEquals", "value": "x"}}}, "mutate": fields{"patchStrategicMerge": fields{"metadata": fields{"annotations": fields{"a": "b"}}}}},
		{"mutate": fields{"patchStrategicMerge": fields{"kind": v}}},
		{"mutate": fields{"patchStrategicMerge": fields{v: fields{v: []any{v}}}}},
		{"mutate": fields{"patchStrategicMerge": v}},
		{"mutate": fields{"patchesJson6902": v}},
		{"mutate": fields{"patchesJson6902": `[{"op": "add", "path": "/data/` + v + `", "value": "x"}]`}},
		{"mutate": fields{"patchesJson6902": `[{"op": "remove", "path": "/data/` + v + `"}]`}},
		{"mutate": fields{"patchesJson6902": `[{"op": "test", "path": "/data/a", "value": "` + v + `"}]`}},
		{"mutate": fields{"patchStrategicMerge": fields{"data": fields{"(a)": v, "x": "y"}}}},
		{"mutate": fields{"foreach": []any{fields{"list": "split(to_string(" + expr + "), '')", "patchStrategicMerge": fields{"data": fields{"e{{ elementIndex }}": "{{ element }}"}}}}}},
		{"mutate": fields{"foreach": []any{fields{"list": "split(to_string(" + expr + "), '')", "patchesJson6902": `[{"op": "add", "path": "/data/has-{{ element }}", "value": "y"}]`}}}},
		{"mutate": fields{"foreach": []any{fields{
			"list": "['3','7','9','b','k','p','q','v','w','x','z']", "preconditions": fields{"all": []any{fields{"key": "{{ contains(to_string(" + expr + "), element) }}", "operator": "Equals", "value": true}}},
			"patchStrategicMerge": fields{"data": fields{"has-{{ element }}": "y"}},
		}}}},
		{"mutate": patch, "preconditions": fields{"all": []any{fields{"key": v, "operator": "Equals", "value": "nothing", "message": "is " + v}}}},
		{"mutate": patch, "preconditions": fields{"any": []any{fields{"key": "a", "operator": "AnyIn", "value": []any{v}}}}},
		{"mutate": use, "context": entry(fields{"configMap": fields{"name": v, "namespace": v}})},
		{"mutate": use, "context": entry(fields{"apiCall": fields{"urlPath": "/api/v1/namespaces/" + v + "/pods/" + v}})},
		{"mutate": use, "context": entry(fields{"apiCall": fields{"method": "GET", "service": fields{"url": "http://127.0.0.1:9/" + v}}})},
		{"mutate": use, "context": entry(fields{"globalReference": fields{"name": v}})},
		{"mutate": use, "context": entry(fields{"imageRegistry": fields{"reference": v}})},
		{"mutate": use, "context": entry(fields{"variable": fields{"jmesPath": "request.object.\"" + v + "\""}})},
		{"mutate": use, "context": entry(fields{"variable": fields{"jmesPath": v}})},
		target(fields{"name": v}), target(fields{"kind": v}), target(fields{"apiVersion": v}), target(fields{"namespace": v}), target(nil),
		target(fields{"name": "", "selector": fields{"matchLabels": fields{"x": v}}}),
	}
}

// celPlaces are a policy's parts that put what an expression makes somewhere.
func celPlaces(call string) []fields {
	put := func(path, value string) string {
		return fmt.Sprintf(`[JSONPatch{op: "add", path: %q, value: dyn(%s)}]`, path, value)
	}
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
		of := patch(put("/data/p", "'x'"))
		of["matchConditions"] = []any{fields{"name": "m", "expression": expression}}
		return with(of)
	}
	return []fields{
		with(patch(put("/data/p", "variables.v"))),
		with(patch(put("/data/p", "variables.w")), "[variables.v, variables.v]"),
		with(patch(put("/data/p", "variables.x.k")), "{'k': variables.v}", "{'k': dyn(variables.w.k), 'n': dyn(size("+text+"))}"),
		with(patch(`[JSONPatch{op: "add", path: "/data/" + ` + escaped + `, value: "x"}]`)),
		with(patch(`[JSONPatch{op: "add", path: "/metadata/labels/" + ` + escaped + `, value: "x"}]`)),
		with(patch(`[JSONPatch{op: "remove", path: "/data/" + ` + escaped + `}]`)),
		with(patch(`[JSONPatch{op: "test", path: "/data/a", value: variables.v}]`)),
		with(patch(`[JSONPatch{op: "copy", from: "/data/" + ` + escaped + `, path: "/data/z"}]`)),
		with(patch(`[JSONPatch{op: ` + text + `, path: "/data/z", value: "x"}]`)),
		with(patch(`[JSONPatch{op: "add", path: ` + text + `, value: "x"}]`)),
		with(patch(put("/metadata/resourceVersion", text))),
		with(patch(put("/metadata/finalizers", "["+text+"]"))),
		with(apply(`Object{data: {"p": ` + text + `}}`)),
		with(apply(`Object{data: {` + text + `: "x"}}`)),
		with(apply(`Object{metadata: Object.metadata{labels: {"l": ` + text + `, ` + text + `: "m"}}}`)),
		with(apply(`Object{metadata: Object.metadata{generateName: ` + text + `}}`)),
		condition(text + ` == "x"`), condition(`int(` + text + `) > 0`), condition(`{'x': true}[` + text + `]`), condition(`url(` + text + `).getHost() != ""`),
	}
}

// celPolicy is a policy of a kind on the ConfigMap c that has the Secret as variables.s, and its binding if
// it has one.
func celPolicy(kyverno bool, name string, of fields) string {
	from := "params.data"
	if kyverno {
		from = "resource.Get('v1', 'secrets', 'default', 's').data"
	}
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

// secretPolicies are policies that put a value of the Secret in one place each.
func secretPolicies() map[string]string {
	out := map[string]string{}
	for i := range kyvernoPlaces("s.text") {
		call := []string{"s.text", "reverse(s.text)", "to_number(s.number)", "sha256(s.text)", "base64_encode(s.text)"}[i%5]
		out[fmt.Sprint("kyverno", i)] = kyvernoPolicy("places", kyvernoPlaces(call)[i:i+1])
	}
	for i := range celPlaces("") {
		call := []string{"variables.s.text", "string(variables.s.text).upperAscii()", "int(variables.s.number)"}[i%3]
		out[fmt.Sprint("mutating", i)] = celPolicy(true, fmt.Sprint("m", i), celPlaces(call)[i])
		out[fmt.Sprint("admission", i)] = celPolicy(false, fmt.Sprint("a", i), celPlaces(call)[i])
	}
	return out
}

// secretFormats are all formats of -o, and where reasons are shown --explain.
func secretFormats() [][]string {
	var out [][]string
	for _, format := range []string{"diff", "summary", "wide", "markdown", "json", "yaml", "jsonpath={.changes}", "go-template={{.}}", "custom-columns=AFTER:.changes"} {
		out = append(out, []string{"--explain", "-o", format})
	}
	for _, format := range []string{"table", "name", "manifests", "json-patch"} {
		out = append(out, []string{"-o", format})
	}
	return append(out, []string{"-o", "name", "-v=8"})
}

// What a policy makes of a Secret is in no format and no report, wherever it puts the result.
func TestSecretsOfPlaces(t *testing.T) {
	tier.NotShort(t)
	dir := t.TempDir()
	world := write(t, dir, "world.yaml", secretWorld())
	policies := secretPolicies()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		all = append(all, policies[name])
	}
	for i := range all {
		all[i] = strings.Replace(all[i], `"name":"places"`, fmt.Sprintf(`"name":"places%d"`, i), 1)
	}
	policy := write(t, dir, "policy.json", strings.Join(all, "\n---\n"))
	run := func(args ...string) string { // the policies name no other host than 127.0.0.1
		code, out := secretsRun(t, append([]string{"preview", "-p", policy, "-f", world, "-q", "--allow-http"}, args...)...)
		if code == process.ExitNothing {
			t.Fatalf("%v: %s", args, out[:min(len(out), 2000)])
		}
		return out
	}
	if shown := run("-o", "json", "--explain", "--show-secrets"); secretIn(shown) == "" {
		t.Fatal("the policies make nothing of the Secret")
	}
	for _, args := range secretFormats() {
		if found := secretIn(run(args...)); found != "" {
			t.Errorf("%v: %s", args, found)
		}
	}
	args := []string{"-o", "name", "--metrics", filepath.Join(dir, "metrics.out")}
	for _, report := range []string{"junit", "sarif", "markdown", "html", "github", "policyreport", "openreports"} {
		args = append(args, "--report", report+"="+filepath.Join(dir, report+".out"))
	}
	run(args...)
	files, err := filepath.Glob(filepath.Join(dir, "*.out"))
	if err != nil || len(files) != 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := secretIn(unpacked(t, string(text))); found != "" {
			t.Errorf("%s: %s", filepath.Base(path), found)
		}
	}
}

// Wherever a policy gets a Secret from, what is shown is the same for two Secrets that differ in nothing but
// their values: with all formats, an external diff and reports.
func TestSecretsFromElsewhere(t *testing.T) {
	tier.NotShort(t)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"path": %q, "header": %q, "body": %q}`, r.URL.Path, r.Header.Get("X-Value"), body)
	}))
	defer echo.Close()
	dir := t.TempDir()
	script := write(t, dir, "differ", "#!/bin/sh\ncat \"$1\"/* \"$2\"/*; ls -R \"$1\" \"$2\" | grep -v :\n")
	if err := os.Chmod(script, 0o700); err != nil { // it is a program
		t.Fatal(err)
	}
	t.Setenv("KUBECTL_EXTERNAL_DIFF", script)
	cases, err := filepath.Glob("testdata/secretsources/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatal(cases, err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			secretSource(t, archive.Files, echo.URL)
		})
	}
}

// secretSource runs the policy of a case in two worlds.
func secretSource(t *testing.T, files []txtar.File, echo string) {
	t.Helper()
	dir := t.TempDir()
	worlds := [2]*strings.Replacer{
		strings.NewReplacer("TEXT", "zQx7Wv9Kp3Jm5TyB", "NAME", "alpha-kjhgf", "SERVICE", echo),
		strings.NewReplacer("TEXT", "Hf2Lr8Dn4Gc6SbVq", "NAME", "bravo-qwert", "SERVICE", echo),
	}
	run := func(world *strings.Replacer, args ...string) string {
		t.Helper()
		for _, f := range files {
			write(t, dir, f.Name, world.Replace(string(f.Data)))
		}
		if strings.HasPrefix(args[0], "-") {
			args = append([]string{"preview"}, args...)
		}
		args = append(args, "-p", filepath.Join(dir, "policy.yaml"), "-f", filepath.Join(dir, "world.yaml"), "--allow-http")
		if args[0] != "convert" {
			args = append(args, "-q")
		}
		if len(files) > 2 {
			args = append(args, "--values", filepath.Join(dir, "values.yaml"))
		}
		code, out := secretsRun(t, args...)
		if code == process.ExitNothing && args[0] != "convert" { // which converts no policy in CEL
			t.Fatalf("%v: %s", args, out)
		}
		return out
	}
	if a, b := run(worlds[0], "-o", "json", "--show-secrets"), run(worlds[1], "-o", "json", "--show-secrets"); a == b {
		t.Fatalf("the Secret decides nothing: %s", run(worlds[0], "-o", "json", "--show-secrets", "--explain"))
	}
	report := filepath.Join(t.TempDir(), "report")
	formats := append(secretFormats(), []string{"--explain"}, []string{"--report", "html=" + report}, []string{"--report", "sarif=" + report}, []string{"--report", "junit=" + report})
	for _, args := range append(formats, otherCommands(t, dir)...) {
		shown := func(world *strings.Replacer) string {
			out := run(world, args...)
			if args[0] == "--report" {
				text, err := os.ReadFile(report)
				if err != nil {
					t.Fatal(err)
				}
				out += string(text)
			}
			return out
		}
		if diff := cmp.Diff(shown(worlds[0]), shown(worlds[1])); diff != "" {
			t.Errorf("%v: what is shown depends on the Secret:\n%s", args, diff)
		}
	}
}

// decidingWorld has a Secret whose values name one of two parts of each object.
func decidingWorld(key string, index int) string {
	other := map[string]string{"alpha": "bravo", "bravo": "alpha"}[key]
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {"key": %q, "other": %q, "index": "%d", "field": %q, "path": %q}}`,
		key, other, index, map[string]string{"alpha": "data", "bravo": "binaryData"}[key], "/data/"+key) + `
---
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default", "labels": {"alpha": "1", "bravo": "2"}, "finalizers": ["example.com/a", "example.com/b", "example.com/c"]},
 "data": {"alpha": "1", "bravo": "2"}, "binaryData": {"x": "YQ=="}}
---
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}`
}

// decidedRules have a Secret decide which part of an object they change.
func decidedRules() map[string][]map[string]any {
	patch := func(operations ...fields) map[string]any {
		text, _ := json.Marshal(operations) // plain values
		return fields{"mutate": fields{"patchesJson6902": string(text)}}
	}
	merge := func(of fields) map[string]any { return fields{"mutate": fields{"patchStrategicMerge": of}} }
	const key, other, field = "{{ s.key }}", "{{ s.other }}", "{{ s.field }}"
	return map[string][]map[string]any{
		"remove":       {patch(fields{"op": "remove", "path": "/data/" + key})},
		"path":         {patch(fields{"op": "remove", "path": "{{ s.path }}"})},
		"replace":      {patch(fields{"op": "replace", "path": "/data/" + key, "value": "x"})},
		"copy":         {patch(fields{"op": "copy", "from": "/data/" + key, "path": "/data/z"})},
		"move":         {patch(fields{"op": "move", "from": "/data/" + key, "path": "/data/z"})},
		"two":          {patch(fields{"op": "remove", "path": "/data/" + key}, fields{"op": "replace", "path": "/data/" + other, "value": "x"})},
		"label":        {patch(fields{"op": "remove", "path": "/metadata/labels/" + key})},
		"element":      {patch(fields{"op": "remove", "path": "/metadata/finalizers/{{ s.index }}"})},
		"insert":       {patch(fields{"op": "add", "path": "/metadata/finalizers/{{ s.index }}", "value": "example.com/d"})},
		"field":        {patch(fields{"op": "remove", "path": "/" + field})},
		"null":         {merge(fields{"data": fields{key: nil}})},
		"null field":   {merge(fields{field: nil})},
		"merged":       {merge(fields{"data": fields{key: "x"}})},
		"merged field": {merge(fields{field: fields{"y": "eA=="}})},
		"put back":     {patch(fields{"op": "remove", "path": "/data/" + key}), merge(fields{"data": fields{"alpha": "1", "bravo": "2"}})},
		"grows":        {merge(fields{"data": fields{key + "-{{ length(keys(request.object.data)) }}": "x"}})},
		"gone again": {
			patch(fields{"op": "add", "path": "/data/x-" + key, "value": "x"}), patch(fields{"op": "remove", "path": "/data/x-" + key}), merge(fields{"data": fields{"z": "x"}}),
		},
		"each": {fields{"mutate": fields{"foreach": []any{fields{
			"list": "['alpha', 'bravo']", "preconditions": fields{"all": []any{fields{"key": "{{ element }}", "operator": "Equals", "value": key}}},
			"patchesJson6902": `[{"op": "remove", "path": "/data/{{ element }}"}]`,
		}}}}},
		"condition": {merge(fields{"data": fields{"z": "{{ s.key == 'alpha' && 'one' || 'two' }}"}})},
	}
}

// otherCommands compare the policies with others that write to the same places, and convert them.
func otherCommands(t *testing.T, dir string) [][]string {
	t.Helper()
	other := write(t, dir, "other.json", `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "other"}, "spec": {"rules": [{
		"name": "r", "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
		"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"l": "other"}}, "data": {"x": "other", "z": "other", "q": "other", "t": "other"}}}}]}}`)
	out := [][]string{
		{"convert", "--variants=0", "--unverified"},
		{"convert", "--variants=20", "--unverified"},
		{"compare", "--variants=10", "--with", other, "-o", "json"},
		{"compare", "--variants=100", "--with", other},
	}
	for _, format := range []string{"diff", "summary", "table", "markdown", "json", "yaml"} {
		out = append(out, []string{"compare", "--variants=0", "--with", other, "-o", format})
	}
	return out
}

// Which part of an object a Secret chooses is not shown: two runs that differ in nothing but what the Secret
// chooses show the same.
func TestSecretsThatDecide(t *testing.T) {
	tier.NotShort(t)
	dir := t.TempDir()
	worlds := []string{
		write(t, dir, "alpha.yaml", decidingWorld("alpha", 0)), write(t, dir, "bravo.yaml", decidingWorld("bravo", 1)),
	}
	for name, rules := range decidedRules() {
		t.Run(name, func(t *testing.T) {
			policy := write(t, dir, "policy.json", kyvernoPolicy("p", rules))
			run := func(world string, args ...string) string {
				if strings.HasPrefix(args[0], "-") {
					args = append([]string{"preview"}, args...)
				}
				_, out := secretsRun(t, slices.Concat(args[:1], []string{"configmaps", "-p", policy, "-f", world}, args[1:])...)
				if slices.Contains(args, "--report") {
					report, err := os.ReadFile(filepath.Join(dir, "html"))
					if err != nil {
						t.Fatal(err)
					}
					out += unpacked(t, string(report))
				}
				return strings.ReplaceAll(out, world, "WORLD")
			}
			if cmp.Equal(run(worlds[0], "-o", "json", "--show-secrets"), run(worlds[1], "-o", "json", "--show-secrets")) {
				t.Fatal("the Secret decides nothing: " + run(worlds[0], "-o", "json", "--show-secrets", "--explain"))
			}
			formats := append(secretFormats(), []string{"--report", "html=" + filepath.Join(dir, "html")})
			for i, args := range append(formats, otherCommands(t, dir)...) {
				if (i+len(name))%tier.Pick(5, 1) > 0 {
					continue // TestSecretsOfPlaces has every format on a push
				}
				if diff := cmp.Diff(run(worlds[0], args...), run(worlds[1], args...)); diff != "" {
					t.Errorf("%v: what is shown depends on the Secret:\n%s", args, diff)
				}
			}
			if code, out := secretsRun(t, "preview", "configmaps", "-p", policy, "-f", worlds[0]); code == process.ExitNothing {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
}

// A Secret names a target that is not there, which has no states to compare.
func TestSecretsThatNameNoTarget(t *testing.T) {
	dir := t.TempDir()
	rules := []map[string]any{{"mutate": fields{
		"targets":             []any{fields{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "{{ s.key }}"}},
		"patchStrategicMerge": fields{"data": fields{"x": "{{ s.key }}"}},
	}}}
	policy := write(t, dir, "policy.json", kyvernoPolicy("p", rules))
	world := write(t, dir, "world.yaml", decidingWorld("alpha", 0))
	for _, args := range otherCommands(t, dir) {
		if args[0] != "compare" {
			continue
		}
		if code, out := secretsRun(t, slices.Concat(args[:1], []string{"configmaps", "-p", policy, "-f", world}, args[1:])...); code != process.ExitIncomplete {
			t.Errorf("%v: exit code %d: %s", args, code, out)
		}
	}
}
