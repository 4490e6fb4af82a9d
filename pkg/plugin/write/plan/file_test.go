package plan_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// saved writes a plan and returns its text.
func saved(t testing.TB, p *plan.Plan) (path, text string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "p.plan")
	if err := plan.Save(path, p); err != nil {
		t.Fatal(err)
	}
	read, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(read)
}

func TestSaveAndLoad(t *testing.T) {
	p := planOf(t, "configmap.txtar")
	path, _ := saved(t, p)
	got, err := plan.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	opts := []cmp.Option{cmpopts.IgnoreUnexported(evaluation.Summary{}, evaluation.RuleSummary{}, plan.Entry{}), cmpopts.EquateEmpty()}
	if d := cmp.Diff(p, got, opts...); d != "" {
		t.Errorf("(-saved +loaded):\n%s", d)
	}
	if runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestSaveWithholdsSecrets(t *testing.T) {
	for _, tt := range []struct {
		file     string
		withheld []string
	}{
		{"configmap.txtar", []string{"spec.password"}},
		{"secret.txtar", []string{"metadata.annotations", "data.a", "data.b"}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			p := planOf(t, tt.file)
			for i := range p.Entries[0].Fields { // as the evaluation marks what a rule makes of a Secret
				f := &p.Entries[0].Fields[i]
				f.Secret = slices.Contains(tt.withheld, engine.PathString(f.Path))
			}
			_, text := saved(t, p)
			for _, value := range []string{"hunter22", "hunter23", "aHVudGVyMjI", "aHVudGVyMjM", "bmV2ZXJzZWVu"} {
				if strings.Contains(text, value) {
					t.Errorf("%s is in the file:\n%s", value, text)
				}
			}
			got, err := plan.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			var withheld []string
			for _, f := range got.Entries[0].Fields {
				if f.Withheld {
					withheld = append(withheld, engine.PathString(f.Path))
				}
			}
			sortStrings := cmpopts.SortSlices(func(a, b string) bool { return a < b })
			if d := cmp.Diff(tt.withheld, withheld, sortStrings); d != "" {
				t.Errorf("withheld (-want +got):\n%s", d)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	_, text := saved(t, planOf(t, "configmap.txtar"))
	replaced := func(old, with string) string {
		t.Helper()
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in the plan", old)
		}
		return strings.Replace(text, old, with, 1)
	}
	entry := strings.TrimSuffix(strings.Split(text, "\n")[1], ",")
	for _, tt := range []struct {
		name, text string
		is         error
		says       string
	}{
		{"nothing", "", plan.ErrNoPlan, "not a plan"},
		{"something else", "apiVersion: v1", plan.ErrDamaged, "damaged or cut off"},
		{"another kind", `{"apiVersion":"v1","kind":"List"}`, plan.ErrNoPlan, "not a plan"},
		{"a plan for another program", `{"apiVersion":"mutate.example.com/v1","kind":"Plan"}`, plan.ErrNoPlan, "not a plan"},
		{"a plan that is cut off", text[:len(text)/2], plan.ErrDamaged, "cut off"},
		{"a policy that was changed", replaced(`"rules":[]`, `"rules":[1]`), plan.ErrDamaged, "does not match its digest"},
		{"a policy under another name", replaced(`"name":"team"},"origin"`, `"name":"taem"},"origin"`), plan.ErrDamaged, "the content is another object"},
		{"a digest that was changed", replaced(`"digest":"sha256:`, `"digest":"sha256:0`), plan.ErrDamaged, "digest"},
		{"a field that is nowhere", replaced(`"f:size"`, `"f:length"`), plan.ErrDamaged, "in neither state"},
		{"a path that is none", replaced(`"f:size"`, `"x"`), plan.ErrDamaged, "field"},
		{"a field without a path", replaced(`["f:spec","f:size"]`, `[]`), plan.ErrDamaged, "no path"},
		{"an unknown kind of change", replaced(`"kind":"replaced"`, `"kind":"swapped"`), plan.ErrDamaged, `unknown kind "swapped"`},
		{"an object without a name", replaced(`"name":"t"`, `"name":""`), plan.ErrDamaged, "names no object"},
		{"an operation that there is not", replaced(`"operation":"UPDATE"`, `"operation":"EXPLODE"`), plan.ErrDamaged, `unknown operation "EXPLODE"`},
		{"an object that comes twice", strings.Replace(text, entry, entry+",\n"+entry, 1), plan.ErrDamaged, "already has an entry"},
		{"a number without an end", replaced(`"size":1`, `"size":`+strings.Repeat("9", 100_000)), plan.ErrDamaged, "cannot unmarshal number 999"},
		{"no clock", replaced(`"created":"2026-01-02T15:04:05.000006789Z"`, `"created":"0001-01-01T00:00:00Z"`), plan.ErrDamaged, "creation time"},
		{
			"an object that is nested too deep",
			replaced(`"size":1`, `"size":1,"deep":`+strings.Repeat("[", 300)+strings.Repeat("]", 300)), plan.ErrDamaged, "nested deeper",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := plan.Parse([]byte(tt.text))
			if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}

// FuzzParse feeds hostile files. Whatever is taken for a plan can be shown, judged
// and written again.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"configmap.txtar", "secret.txtar"} {
		_, text := saved(f, planOf(f, file))
		f.Add([]byte(text))
		f.Add([]byte(text[:len(text)/2]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := plan.Parse(text)
		if err != nil {
			return
		}
		for _, e := range p.Entries {
			c := e.Change()
			c.Before.SetResourceVersion("1")
			_ = e.Drift(&c)
			e.Leaves()
		}
		if _, err := p.Text(); err != nil {
			t.Errorf("a plan that was read cannot be written: %v", err)
		}
	})
}

// here is what a run is checked against.
type here struct {
	Cluster plan.Cluster
	Version string
	Now     time.Time
	MaxAge  time.Duration
}

func TestRunCheck(t *testing.T) {
	run := plan.Run{
		Cluster: plan.Cluster{UID: "u", Server: "https://a", Context: "prod"}, Version: "v1.2.3", Created: created,
	}
	from := here{Cluster: run.Cluster, Version: "v1.2.3", Now: created.Add(time.Hour), MaxAge: plan.DefaultMaxAge}
	for _, tt := range []struct {
		name string
		at   func(*here)
		want string
	}{
		{"here", func(*here) {}, ""},
		{"under another address", func(h *here) { h.Cluster.Server, h.Cluster.Context = "https://b", "test" }, ""},
		{
			"on another cluster at the same address", func(h *here) { h.Cluster.UID = "v" },
			"it was made on another cluster (context prod, https://a, kube-system u) than this one (context prod, https://a, kube-system v)",
		},
		{"by a user who may not read the UID", func(h *here) { h.Cluster.UID = "" }, ""},
		{
			"by such a user at another address", func(h *here) { h.Cluster = plan.Cluster{Server: "https://b"} },
			"it was made on another cluster (context prod, https://a, kube-system u) than this one (https://b)",
		},
		{"by a fix of the same release", func(h *here) { h.Version = "1.2.9" }, ""},
		{
			"by another release", func(h *here) { h.Version = "v1.3.0" },
			"it was made by version v1.2.3 of this program, and this is v1.3.0; make it again",
		},
		{
			"by a build of no release", func(h *here) { h.Version = "dev" },
			"it was made by version v1.2.3 of this program, and this is dev; make it again",
		},
		{
			"two days later", func(h *here) { h.Now = created.Add(48 * time.Hour) },
			"it is 48h0m0s old, which is more than 24h0m0s (--plan-max-age); make it again",
		},
		{"two days later, at any age", func(h *here) { h.Now, h.MaxAge = created.Add(48*time.Hour), 0 }, ""},
		{"by a clock that is a little behind", func(h *here) { h.Now = created.Add(-time.Minute) }, ""},
		{
			"before it was made", func(h *here) { h.Now = created.Add(-time.Hour) },
			"it was made 1h0m0s in the future; set the clock of this machine",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := from
			tt.at(&at)
			got := ""
			if err := run.Check(at.Cluster, at.Version, at.Now, at.MaxAge); err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func document(kind, name string, size int64) engine.Document {
	return engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": kind, "metadata": map[string]any{"name": name},
		"spec": map[string]any{"size": size},
	}}, "cluster")
}

func TestRunRestore(t *testing.T) {
	own := document("ClusterPolicy", "own", 1)
	own.Origin = "own.yaml:1"
	installed := []engine.Document{document("ClusterPolicy", "a", 1), document("PolicyException", "b", 1)}
	var run plan.Run
	var err error
	run.Documents, run.Digest, err = plan.DocumentsOf(append(installed[:2:2], own), func(d engine.Document) bool { return d.Origin == "cluster" })
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Validate(); err != nil {
		t.Fatal(err)
	}
	ready := document("ClusterPolicy", "a", 1)
	ready.Object().Object["status"] = map[string]any{"ready": true}
	ready.Object().SetResourceVersion("9")
	shadowed := document("ClusterPolicy", "own", 2)
	for _, tt := range []struct {
		name string
		now  []engine.Document
		want string
	}{
		{"as it was", installed, ""},
		{"in another order, with another status", []engine.Document{installed[1], ready}, ""},
		{"beside an installed one that the file's took the place of", append(installed[:2:2], shadowed), ""},
		{
			"changed",
			[]engine.Document{document("ClusterPolicy", "a", 2), installed[1]},
			"the policies in the cluster have changed since (changed: kyverno.io/ClusterPolicy a); make it again",
		},
		{
			"gone, and a new one",
			[]engine.Document{installed[0], document("PolicyException", "c", 1)},
			"the policies in the cluster have changed since (gone: kyverno.io/PolicyException b; new: kyverno.io/PolicyException c); make it again",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := run.Restore(tt.now)
			if tt.want != "" {
				if err == nil || err.Error() != tt.want {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, d := range got {
				names = append(names, d.Key.Name+" "+d.Origin)
			}
			if d := cmp.Diff([]string{"a cluster", "b cluster", "own own.yaml:1"}, names); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDocumentsOfRefusesSecrets(t *testing.T) {
	s := object(t, sections(t, "configmap.txtar")["secret.yaml"])
	_, _, err := plan.DocumentsOf([]engine.Document{engine.NewDocument(s, "s.yaml:1")}, func(engine.Document) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "a plan holds no Secrets") {
		t.Errorf("got %v", err)
	}
}

var created = time.Date(2026, 1, 2, 15, 4, 5, 6789, time.UTC)

// sections reads the sections of a txtar file by name.
func sections(t testing.TB, file string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range archive.Files {
		out[f.Name] = string(f.Data)
	}
	return out
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		t.Fatal("a section is missing")
	}
	u := &unstructured.Unstructured{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return u
}

var rule = engine.RuleRef{Dialect: "kyverno", Policy: "team", Rule: "label", Origin: "team.yaml:1"}

// change is what one rule made of an object.
func change(before, after *unstructured.Unstructured) engine.Change {
	c := engine.Change{Subject: engine.KeyOf(before), Before: before, After: after, Scoped: true}
	for _, f := range diff.Compare(before.Object, after.Object, diff.Type{}) {
		f.Writer = &rule
		c.Fields = append(c.Fields, f)
	}
	if len(c.Fields) == 0 {
		c.After = before
		return c
	}
	c.Steps = []engine.Step{{Rule: rule, Outcome: engine.Changed, After: after}}
	return c
}

// planOf is the plan of a file's sections before.yaml and after.yaml.
func planOf(t testing.TB, file string) *plan.Plan {
	t.Helper()
	s := sections(t, file)
	before, after := object(t, s["before.yaml"]), object(t, s["after.yaml"])
	c := change(before, after)
	summary := evaluation.NewSummary([]engine.RuleRef{rule})
	summary.Add(&c)
	policy := engine.NewDocument(object(t, s["policy.yaml"]), "team.yaml:1")
	documents, digest, err := plan.DocumentsOf([]engine.Document{policy}, func(engine.Document) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	e := plan.NewEntry(&c)
	return &plan.Plan{
		Run: plan.Run{
			Cluster: plan.Cluster{UID: "u", Server: "https://127.0.0.1", Context: "prod"}, Version: "v1.2.3",
			Created: created, Seed: 1<<64 - 1, Choice: plan.Choice{Namespace: "shop", Operation: engine.OperationUpdate},
			Documents: documents, Digest: digest,
		},
		Summary: *summary, Entries: []*plan.Entry{&e},
	}
}

const (
	tamperedBefore = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, finalizers: [example.com/one]}, data: {level: debug, old: "1"}, list: [{name: x, n: 1}, {name: y, n: 2}]}`
	tamperedAfter  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, finalizers: [example.com/one, example.com/two]}, data: {level: info, new: {b: [1, 2]}}, list: [{name: x, n: 1}, {name: y, n: 3}]}`
)

// FuzzTamperedEntry changes one value of an entry as it stands in a plan. Whatever it is, an entry that is
// valid and has not drifted shows each field that would be written, from its value and to its value.
func FuzzTamperedEntry(f *testing.F) {
	for n := range 200 {
		for _, value := range []string{`null`, `"evil"`, `7`, `""`, `true`, `[]`, `{}`, `{"evil": 1}`, `["f:data", "f:evil"]`} {
			f.Add(uint(n), value)
		}
	}
	now := change(object(f, tamperedBefore), object(f, tamperedAfter))
	original, err := json.Marshal(plan.NewEntry(&now).Masked())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, n uint, text string) {
		var value, entry any
		if json.Unmarshal([]byte(text), &value) != nil {
			t.Skip("not JSON")
		}
		if err := json.Unmarshal(original, &entry); err != nil {
			t.Fatal(err)
		}
		n++
		entry = replaced(entry, &n, value)
		tampered, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		var e plan.Entry
		if json.Unmarshal(tampered, &e) != nil || e.Validate() != nil || e.Drift(&now) != nil {
			return
		}
		for _, f := range now.Fields {
			from, _ := diff.Lookup(map[string]any(e.Before), f.Path)
			to, _ := diff.Lookup(map[string]any(e.After), f.Path)
			if !same(from, f.From) || !same(to, f.To) {
				t.Errorf("%s changes from %v to %v, and the plan shows %v and %v:\n%s", f.Path, f.From, f.To, from, to, tampered)
			}
		}
	})
}

// same compares values as JSON, which knows one kind of numbers.
func same(a, b any) bool {
	var values [2]any
	for i, v := range []any{a, b} {
		text, err := json.Marshal(v)
		if err != nil || json.Unmarshal(text, &values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// replaced replaces the nth value of a JSON value, counted in depth and by the order of keys, by another one.
func replaced(v any, n *uint, by any) any {
	if *n--; *n == 0 {
		return by
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			v[k] = replaced(v[k], n, by)
		}
	case []any:
		for i := range v {
			v[i] = replaced(v[i], n, by)
		}
	}
	return v
}
