package diff_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

type subsetCase struct {
	BuiltIn        bool
	From, To, Want map[string]any
	Wanted         []string
}

func subsetCases(t *testing.T) map[string]subsetCase {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/subsets.txtar")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]subsetCase{}
	for _, f := range archive.Files {
		var c subsetCase
		if err := yaml.UnmarshalStrict(f.Data, &c); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		out[f.Name] = c
	}
	return out
}

func differences(from, to map[string]any, builtIn bool) []engine.FieldChange {
	return diff.Compare(from, to, diff.Type{EmptyIsAbsent: builtIn})
}

func TestSubset(t *testing.T) {
	for name, c := range subsetCases(t) {
		t.Run(name, func(t *testing.T) {
			var wanted, others []engine.FieldChange
			for _, f := range differences(c.From, c.To, c.BuiltIn) {
				path := engine.PathString(f.Path)
				if slices.Contains(c.Wanted, path) || slices.Contains(c.Wanted, "all") {
					wanted = append(wanted, f)
				} else {
					others = append(others, f)
				}
			}
			if len(wanted) < len(c.Wanted) {
				t.Fatalf("wanted %q; there are %v and %v", c.Wanted, wanted, others)
			}
			from, to := clone(t, c.From), clone(t, c.To)
			if d := cmp.Diff(c.Want, diff.Subset(c.From, c.To, wanted, others)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if d := cmp.Diff(from, c.From) + cmp.Diff(to, c.To); d != "" {
				t.Errorf("what was given is modified:\n%s", d)
			}
		})
	}
}

func clone(t *testing.T, m map[string]any) (out map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(m)
	if err == nil {
		err = yaml.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever two objects are, all of their differences lead from one to the other.
func FuzzSubset(f *testing.F) {
	f.Add(`{"c":[{"name":"a"},{"name":"b","v":[1]}]}`, `{"c":[{"name":"b"},{"name":"z"}],"d":null}`)
	f.Add(`{"a":{"0":[[],{}]}}`, `{"a":[{"0":1}]}`)
	f.Add(``, `0:`)
	f.Fuzz(func(t *testing.T, before, after string) {
		var from, to map[string]any
		if yaml.Unmarshal([]byte(before), &from) != nil || yaml.Unmarshal([]byte(after), &to) != nil {
			t.Skip("no objects")
		}
		all := differences(from, to, false)
		if left := differences(diff.Subset(from, to, all, nil), to, false); len(left) > 0 {
			t.Errorf("still different: %v", left)
		}
		for i := range all {
			diff.Subset(from, to, all[i:i+1], slices.Delete(slices.Clone(all), i, i+1))
		}
	})
}
