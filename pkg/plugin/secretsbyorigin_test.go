package plugin_test

import (
	"bytes"
	"context"
	"crypto/md5"  //nolint:gosec // what policies may use
	"crypto/sha1" //nolint:gosec // what policies may use
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/internal/tier"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	enginecel "github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy/library"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
)

// The values of the Secret. No five letters of the first, in any case and either direction, and no
// five digits of the second, stand anywhere else: no time of day, date or port has five digits above 5.
const (
	secretText   = `zQx7Wv9Kp3Jm5"<Ty8`
	secretNumber = "8697968779"
	secretOlder  = "oVbN4rFq9Hw"
)

func secretWorld() string {
	secret := map[string]string{
		"text": secretText, "number": secretNumber, "json": `{"k":"` + "zQx7Wv9Kp3Jm5" + `","n":` + secretNumber + `}`,
		"encoded": "elF4N1d2OUtwM0ptNQ==", "time": "2031-07-19T04:56:37Z", "version": "86979.68.79", "quantity": secretNumber + "Mi",
		"image": "zqx7wv9.example/kp3jm5:ty8",
	}
	text, _ := json.Marshal(secret)
	applied, _ := json.Marshal(`{"apiVersion":"v1","kind":"Secret","stringData":{"text":"` + secretOlder + `"}}`)
	object := func(kind, name, rest string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": %q, "metadata": {"name": %q, "namespace": "default"%s`, kind, name, rest)
	}
	return strings.Join([]string{
		object("Secret", "s", `, "annotations": {"kubectl.kubernetes.io/last-applied-configuration": `+string(applied)+`}}, "stringData": `+string(text)+`}`),
		object("ConfigMap", "c", `, "labels": {"app": "web"}}, "data": {"a": "b"}}`),
		object("ConfigMap", "target", `}, "data": {"a": "b"}}`),
		`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}`,
	}, "\n---\n")
}

// jmespathFunctions are the entries of the table of functions, with the kinds of their parameters.
func jmespathFunctions(t *testing.T) map[string][]string {
	t.Helper()
	table, err := os.ReadFile("../engine/kyverno/jmespath/table.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, entry := range regexp.MustCompile(`(?m)^\t"(\w+)": +\{(?:params: \[\]kind\{([^}]*)\})?`).FindAllStringSubmatch(string(table), -1) {
		out[entry[1]] = nil
		if entry[2] != "" {
			out[entry[1]] = strings.Split(entry[2], ", ")
		}
	}
	if len(out) < 60 {
		t.Fatalf("found %d functions", len(out))
	}
	return out
}

// jmespathValues are arguments for a parameter: harmless ones, and those that hold a value of the Secret.
func jmespathValues(kind string) (harmless string, secret []string) {
	texts := []string{"s.text", "s.number", "s.json", "s.encoded", "s.time", "s.version", "s.quantity", "s.image"}
	switch {
	case strings.Contains(kind, "anExpression"):
		return "&@", []string{"&[@, 'x']"}
	case strings.Contains(kind, "anything"):
		return "'1'", append(texts, "[s.text]", "to_number(s.number)")
	case strings.Contains(kind, "aString"):
		return "'x'", texts
	case strings.Contains(kind, "aNumber"):
		return "`2`", []string{"to_number(s.number)"}
	case strings.Contains(kind, "anObject"):
		return "{a: 'b'}", []string{"s", "{k: s.text}"}
	case strings.Contains(kind, "numbers"), strings.Contains(kind, "strs"):
		return "['1']", []string{"[s.text, 'x']", "[to_number(s.number), `1`]"}
	default:
		return "['1']", []string{"[s.text, 'x']", "split(s.text, '')"}
	}
}

// jmespathCalls are expressions that compute with a value of the Secret.
func jmespathCalls(name string, params []string) []string {
	var out []string
	for i, kind := range params {
		_, secrets := jmespathValues(kind)
		for _, secret := range secrets {
			args := make([]string, len(params))
			for j, other := range params {
				args[j], _ = jmespathValues(other)
			}
			args[i] = secret
			out = append(out, name+"("+strings.Join(args, ", ")+")")
		}
	}
	if len(params) == 0 {
		return []string{name + "(s.text)", "[" + name + "(), s.text]"}
	}
	return append(out, special()[name]...)
}

// special are calls whose results hold more of a value than those that are generated.
func special() map[string][]string {
	return map[string][]string{
		"join":                      {"join('-', split(s.text, ''))", "join('', split(s.text, 'v'))", "join('.', [s.text, s.number])"},
		"truncate":                  {"truncate(s.text, `6`)", "truncate(reverse(s.text), `9`)"},
		"to_number":                 {"to_number(s.number)", "to_number(join('.', [s.number, '25']))"},
		"multiply":                  {"multiply(to_number(s.number), `3`)"},
		"regex_replace_all_literal": {"regex_replace_all_literal('^.{4}', s.text, '')"},
		"regex_replace_all":         {"regex_replace_all('(.)', s.text, '$1-')"},
		"replace_all":               {"replace_all(s.text, 'Q', '_')"},
		"object_from_lists":         {"object_from_lists([s.text], ['x'])", "object_from_lists(split(s.text, ''), split(s.text, ''))"},
		"items":                     {"items(s, 'k', 'v')", "items(s, s.text, 'v')"},
		"map":                       {"map(&to_upper(@), [s.text])", "map(&join('-', [@, 'x']), split(s.text, ''))"},
		"to_string":                 {"to_string(s)", "to_string(sec)"},
		"parse_json":                {"parse_json(s.json).k", "parse_json(s.text)", `parse_json(sec.metadata.annotations."kubectl.kubernetes.io/last-applied-configuration")`},
		"parse_yaml":                {"parse_yaml(s.json).n"},
		"lookup":                    {"lookup(s, 'text')"},
		"base64_encode":             {"base64_encode(base64_encode(s.text))"},
		"length":                    {"length(s.text)"},
		"not_null":                  {"not_null(s.none, s.text)", "s.text || 'x'", "s.text && s.number", "[s.text][0]", "{a: s.text}", "s.*", "values(s)[?contains(@, 'Q')]", "s.text == 'x'", "!s.text"},
	}
}

// A celTrial tries expressions that see the Secret's values as variables.s.
type celTrial struct {
	environment *enginecel.Environment
	scope       *enginecel.Scope
	object      map[string]any
	session     func(context.Context) map[string]any
}

// newCELTrial has the functions of Kyverno's MutatingPolicies, or those of a MutatingAdmissionPolicy.
func newCELTrial(t *testing.T, kyverno bool) *celTrial {
	t.Helper()
	options := enginecel.Options{RequestObjects: true, PatchTypes: true}
	c := &celTrial{object: map[string]any{}, session: func(context.Context) map[string]any { return nil }}
	if kyverno {
		options.Extensions = library.Options(false)
		world := &engine.World{Limits: engine.DefaultLimits()}
		c.session = func(ctx context.Context) map[string]any {
			return library.NewSession(ctx, world, library.Settings{Entries: &library.Entries{}}).Bindings()
		}
	}
	var err error
	if c.environment, err = enginecel.NewEnvironment(options); err != nil {
		t.Fatal(err)
	}
	c.scope = c.environment.NewScope()
	if err := c.scope.Variable("s", "object.stringData"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(strings.Split(secretWorld(), "\n---\n")[0]), &c.object); err != nil {
		t.Fatal(err)
	}
	return c
}

// patches reports whether an expression compiles where a value of a patch stands, and whether it has one.
func (c *celTrial) patches(ctx context.Context, call string) (compiles, works bool) {
	m, err := c.scope.JSONPatch(celPatch("/x", call))
	if err != nil {
		return false, false
	}
	in := enginecel.Input{Object: c.object, Extra: c.session(ctx)}
	_, err = c.scope.Evaluate(ctx, in, enginecel.MutationBudget()).Mutate(m, nil)
	return true, err == nil
}

// celPatch is a patch that puts the value of an expression somewhere.
func celPatch(path, call string) string {
	return fmt.Sprintf(`[JSONPatch{op: "add", path: %q, value: dyn(%s)}]`, path, call)
}

// celCalls are expressions that call each overload of each function that MutatingPolicies, or
// MutatingAdmissionPolicies, have, with a value of the Secret for each argument.
func celCalls(t *testing.T, trial *celTrial) (good, bad []string) {
	t.Helper()
	failing := 0 // calls of one function; a policy for each would take too long
	add := func(call string) (reached bool) {
		compiles, works := trial.patches(t.Context(), call)
		if works {
			good = append(good, call)
		} else if compiles {
			if failing++; failing == 1 && len(bad) < 30 {
				bad = append(bad, call)
			}
		}
		return compiles
	}
	functions := trial.environment.Functions()
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		reached := false
		failing = 0
		for _, overload := range functions[name].OverloadDecls() {
			for _, call := range celCallsOf(name, overload.IsMemberFunction(), overload.ArgTypes()) {
				reached = add(call) || reached
			}
		}
		if !reached && !celUnreached(name) {
			t.Errorf("no call of %s compiles: the test does not reach it", name)
		}
	}
	for _, call := range []string{
		`"db://user:" + variables.s.text + "@host"`, `variables.s.text.split("").map(c, c + "-").join("")`, `[variables.s.text].map(x, x.upperAscii())[0]`,
		`variables.s.text.startsWith("z") ? variables.s.text : "none"`, `{"k": variables.s.text}.k`, `variables.s.?text.orValue("")`,
		`[variables.s.text].sortBy(x, x)[0]`, `optional.unwrap([optional.of(variables.s.text)])[0]`, `variables.s[?"text"].value()`, `[variables.s.text].transformMap(i, v, v)[0]`,
		`math.greatest(int(variables.s.number), 1)`, `[1, 2].map(i, variables.s.text.substring(i))[0]`,
	} {
		if !add(call) && (functions["math.@max"] != nil || !strings.HasPrefix(call, "math.")) {
			t.Errorf("%s does not compile", call)
		}
	}
	return good, bad
}

// celUnreached reports whether only the library itself, or a macro, calls a function, or it takes nothing.
func celUnreached(name string) bool {
	return strings.ContainsAny(name, "@?") || strings.HasPrefix(name, "format.") ||
		slices.Contains([]string{"__not_strictly_false__", "in", "optional.none", "unwrapOpt", "optional.unwrap"}, name)
}

func celCallsOf(name string, member bool, params []*types.Type) []string {
	var out []string
	for i := range params {
		for _, secret := range celValues(params[i], true) {
			args := make([]string, len(params))
			for j, other := range params {
				args[j] = "''"
				if harmless := celValues(other, false); len(harmless) > 0 {
					args[j] = harmless[0]
				}
			}
			args[i] = secret
			out = append(out, celSpelled(name, member, args))
		}
	}
	return out
}

func celSpelled(name string, member bool, args []string) string {
	if operator, ok := operators.FindReverse(name); ok && operator != "" {
		if len(args) == 1 {
			return operator + "(" + args[0] + ")"
		}
		return args[0] + " " + operator + " " + args[1]
	}
	switch {
	case name == operators.Index:
		return args[0] + "[" + args[1] + "]"
	case member:
		return args[0] + "." + name + "(" + strings.Join(args[1:], ", ") + ")"
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

func celValues(of *types.Type, secret bool) []string {
	pick := func(harmless string, secrets ...string) []string {
		if secret {
			return secrets
		}
		return []string{harmless}
	}
	switch of.Kind() {
	case types.StringKind:
		return pick("'x'", "string(variables.s.text)", "string(variables.s.number)", "string(variables.s.json)", "string(variables.s.time)")
	case types.BytesKind:
		return pick("b'x'", "bytes(string(variables.s.text))")
	case types.IntKind:
		return pick("2", "int(string(variables.s.number))")
	case types.UintKind:
		return pick("2u", "uint(string(variables.s.number))")
	case types.DoubleKind:
		return pick("2.0", "double(string(variables.s.number))")
	case types.BoolKind:
		return pick("true", "(string(variables.s.text) == 'x')")
	case types.ListKind:
		return pick("['x']", "[string(variables.s.text)]", "string(variables.s.text).split('')", "[int(string(variables.s.number))]")
	case types.MapKind:
		return pick("{'a': 'b'}", "variables.s", "{string(variables.s.text): 'x'}")
	case types.TimestampKind:
		return pick("timestamp('2024-01-01T00:00:00Z')", "timestamp(string(variables.s.time))")
	case types.DurationKind:
		return pick("duration('1h')", "duration(string(variables.s.number) + 's')")
	case types.TypeKind:
		return pick("type(1)", "type(variables.s.text)")
	}
	switch of.TypeName() {
	case "kubernetes.Quantity":
		return pick("quantity('1')", "quantity(string(variables.s.quantity))")
	case "kubernetes.Semver":
		return pick("semver('1.2.3')", "semver(string(variables.s.version))")
	case "kubernetes.URL":
		return pick("url('http://x')", "url('http://' + string(variables.s.image))")
	case "optional_type":
		return pick("optional.of('x')", "optional.of(variables.s.text)")
	case "kyverno.image":
		return pick("image('x')", "image(string(variables.s.image))")
	}
	return pick("'x'", "variables.s.text")
}

// disguises finds a value in a text, whatever was done to it that keeps five of its letters or digits in order, in
// either direction, or eight of its base64, hexadecimal digits or digests.
type disguises struct{ windows []string }

func newDisguises(values ...string) disguises {
	var out disguises
	add := func(text string, size int) {
		text = plainLetters(text)
		for i := 0; i+size <= len(text); i++ {
			out.windows = append(out.windows, text[i:i+size])
		}
	}
	for _, v := range values {
		add(v, 5)
		reversed := []byte(v)
		slices.Reverse(reversed)
		add(string(reversed), 5)
		add(hex.EncodeToString([]byte(v)), 8)
		for _, text := range []string{v, strings.ToUpper(v), string(reversed)} {
			for before := range 3 { // what stands before it decides which letters encode it
				encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
				add(encoded[4:len(encoded)-4], 8)
			}
			add(fmt.Sprintf("%x", sha256.Sum256([]byte(text))), 8)
			add(fmt.Sprintf("%x", sha1.Sum([]byte(text))), 8) //nolint:gosec // what policies may use
			add(fmt.Sprintf("%x", md5.Sum([]byte(text))), 8)  //nolint:gosec // what policies may use
		}
	}
	return out
}

var separators = regexp.MustCompile(`[^a-z0-9]+`)

func plainLetters(text string) string { return separators.ReplaceAllString(strings.ToLower(text), "") }

// in returns what is found in a text, and what stands around it.
func (d disguises) in(text string) string {
	plain := plainLetters(text)
	for _, w := range d.windows {
		if i := strings.Index(plain, w); i >= 0 {
			return plain[max(0, i-60):min(len(plain), i+60)]
		}
	}
	return ""
}

// secretsRun runs the program on files of a directory.
func secretsRun(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	defer klog.CaptureState().Restore()
	klog.SetLogger(logr.Discard()) // as Main does
	var b bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &b, ErrOut: &b}
	code = plugin.Run(t.Context(), plugin.NewCommand("kubectl mutate", streams), args, streams)
	klog.Flush()
	return code, b.String()
}

func writeSecretsFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kyvernoPolicy has a rule for each mutate block, all of which see the Secret as sec, and what is in it as s.
func kyvernoPolicy(name string, rules []map[string]any) string {
	return kyvernoPolicyFrom(name, rules, fields{"name": "sec", "apiCall": fields{"urlPath": secretPath}}, fields{"name": "s", "variable": fields{"jmesPath": "sec.stringData"}})
}

// secretPath is where the Secret is.
const secretPath = "/api/v1/namespaces/default/secrets/s"

// kyvernoPolicyFrom is kyvernoPolicy, with the context by which rules see the Secret.
func kyvernoPolicyFrom(name string, rules []map[string]any, context ...any) string {
	for i, r := range rules {
		r["name"] = fmt.Sprint("r", i)
		r["match"] = map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"ConfigMap"}, "names": []any{"c"}}}}}
		more, _ := r["context"].([]any)
		r["context"] = slices.Concat(context, more)
	}
	text, _ := json.Marshal(map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"rules": rules},
	})
	return string(text)
}

type fields = map[string]any

// kyvernoValues are rules that put what an expression makes where values go.
func kyvernoValues(i int, expr string) []map[string]any {
	v := "{{ " + expr + " }}"
	return []map[string]any{
		{"mutate": fields{"patchStrategicMerge": fields{
			"metadata": fields{"annotations": fields{fmt.Sprint("n", i): v}}, "data": fields{fmt.Sprint("f", i): "a " + v + " z"},
		}}},
		{"mutate": fields{"patchStrategicMerge": fields{"data": fields{fmt.Sprintf("{{ to_string(%s) }}-%d", expr, i): "x"}}}},
	}
}

// secretCalls are expressions whose values are put everywhere.
var secretCalls = []string{
	"s.text", "reverse(s.text)", "to_upper(s.text)", "join('-', split(s.text, ''))", "to_number(s.number)", "sha256(s.text)", "truncate(s.text, `7`)", "base64_encode(s.text)",
}

// kyvernoPlaces are rules that put it everywhere else.
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

// mutatingPolicies have the CEL calls: those that have a value in few policies, since the first that fails ends one.
func mutatingPolicies(good, bad []string) string {
	var out []string
	policy := func(mutations []string) {
		patches := make([]any, len(mutations))
		for i, m := range mutations {
			patches[i] = fields{"patchType": "JSONPatch", "jsonPatch": fields{"expression": m}}
		}
		text, _ := json.Marshal(fields{
			"apiVersion": "policies.kyverno.io/v1beta1", "kind": "MutatingPolicy", "metadata": fields{"name": fmt.Sprint("m", len(out))},
			"spec": fields{
				"failurePolicy": "Ignore", "variables": []any{fields{"name": "s", "expression": "resource.Get('v1', 'secrets', 'default', 's').stringData"}},
				"matchConstraints": fields{"resourceRules": []any{fields{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"configmaps"}}}},
				"mutations":        patches,
			},
		})
		out = append(out, string(text))
	}
	var mutations []string
	for i, call := range good {
		mutations = append(mutations, celPatch(fmt.Sprint("/data/m", i), call))
		if len(mutations) == 40 {
			policy(mutations)
			mutations = nil
		}
	}
	if len(mutations) > 0 {
		policy(mutations)
	}
	for _, call := range bad {
		policy([]string{celPatch("/data/x", call)})
	}
	return strings.Join(out, "\n---\n")
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

// What a policy makes of a Secret is in no output, whatever function it uses and wherever it puts the result.
func TestSecretsByOrigin(t *testing.T) {
	tier.NotShort(t)
	dir := t.TempDir()
	world := writeSecretsFile(t, dir, "world.yaml", secretWorld())
	functions := jmespathFunctions(t)
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		calls = append(calls, jmespathCalls(name, functions[name])...)
	}
	var values, places []map[string]any
	for i, call := range calls {
		values = append(values, kyvernoValues(i, call)...)
	}
	for _, call := range secretCalls {
		places = append(places, kyvernoPlaces(call)...)
	}
	good, bad := celCalls(t, newCELTrial(t, true))
	t.Logf("%d expressions of %d JMESPath functions, %d rules for other places, %d and %d CEL expressions", len(calls), len(functions), len(places), len(good), len(bad))
	for name, policies := range map[string]string{
		"values": kyvernoPolicy("values", values), "places": kyvernoPolicy("places", places), "cel": mutatingPolicies(good, bad),
	} {
		t.Run(name, func(t *testing.T) {
			policy := writeSecretsFile(t, dir, name+".json", policies)
			run := func(args ...string) string {
				if name == "places" { // which names no other host than 127.0.0.1
					args = append(args, "--allow-http")
				}
				code, out := secretsRun(t, append([]string{"preview", "-p", policy, "-f", world, "-q"}, args...)...)
				if code == plugin.ExitNothing {
					t.Fatalf("%v: %s", args, out[:min(len(out), 2000)])
				}
				return out
			}
			secrets := newDisguises(secretText, secretNumber, secretOlder)
			if shown := run("-o", "json", "--explain", "--show-secrets"); secrets.in(shown) == "" {
				t.Fatal("the policies make nothing of the Secret")
			}
			formats := [][]string{{"-o", "json", "--explain"}}
			if name == "places" { // printers are given no functions
				formats = secretFormats()
			}
			for _, args := range formats {
				if found := secrets.in(run(args...)); found != "" {
					t.Errorf("%v: %s", args, found)
				}
			}
			if name == "places" {
				checkSecretReports(t, dir, secrets, run)
			}
		})
	}
}

// checkSecretReports runs a preview with all reports, and the metrics.
func checkSecretReports(t *testing.T, dir string, secrets disguises, run func(...string) string) {
	t.Helper()
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
		if found := secrets.in(unpacked(t, string(text))); found != "" {
			t.Errorf("%s: %s", filepath.Base(path), found)
		}
	}
}
