package plan_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
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
	opts := []cmp.Option{cmpopts.IgnoreUnexported(evaluation.Summary{}, plan.Entry{}), cmpopts.EquateEmpty()}
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
