package portion_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/portion"
)

type testCase struct {
	BuiltIn        bool
	From, To, Want map[string]any
	Wanted         []string
}

func cases(t *testing.T) map[string]testCase {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/portions.txtar")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]testCase{}
	for _, f := range archive.Files {
		var c testCase
		if err := yaml.UnmarshalStrict(f.Data, &c); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		out[f.Name] = c
	}
	return out
}

func differences(from, to map[string]any, builtIn bool) []engine.FieldChange {
	var out []engine.FieldChange
	for _, f := range diff.Compare(from, to, diff.Type{EmptyIsAbsent: builtIn}) {
		out = append(out, f)
	}
	return out
}

func TestOnlyWhatIsWantedIsMade(t *testing.T) {
	for name, c := range cases(t) {
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
			if diff := cmp.Diff(c.Want, portion.Make(c.From, c.To, wanted, others)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(from, c.From) + cmp.Diff(to, c.To); diff != "" {
				t.Errorf("what was given is modified:\n%s", diff)
			}
		})
	}
}

// All differences lead to the other object, in the eyes of fielddiff, and none to none.
func TestTheWholeIsTheSumOfItsParts(t *testing.T) {
	for name, c := range cases(t) {
		all := differences(c.From, c.To, c.BuiltIn)
		if left := differences(portion.Make(c.From, c.To, all, nil), c.To, c.BuiltIn); len(left) > 0 {
			t.Errorf("%s: still different: %v", name, left)
		}
		if diff := cmp.Diff(c.From, portion.Make(c.From, c.To, nil, all)); diff != "" {
			t.Errorf("%s: differs although nothing is wanted:\n%s", name, diff)
		}
	}
}

// Somebody else decides how long lists and maps are.
func TestManyDifferencesTakeNoTime(t *testing.T) {
	const many = 50_000
	of := func(value string) map[string]any {
		list, fields := make([]any, many), map[string]any{}
		for i := range many {
			list[i] = map[string]any{"name": fmt.Sprint("n", i), "v": value}
			fields[fmt.Sprint("f", i)] = value
		}
		return map[string]any{"list": list, "map": fields}
	}
	from, to := of("a"), of("b")
	all := differences(from, to, false)
	begun := time.Now()
	got := portion.Make(from, to, all[1:], all[:1])
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if diff := cmp.Diff(to, got); diff != "" {
		t.Errorf("a list with that many differences comes whole: -want +got:\n%s", diff)
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
func FuzzTheWholeIsTheSumOfItsParts(f *testing.F) {
	f.Add(`{"c":[{"name":"a"},{"name":"b","v":[1]}]}`, `{"c":[{"name":"b"},{"name":"z"}],"d":null}`)
	f.Add(`{"a":{"0":[[],{}]}}`, `{"a":[{"0":1}]}`)
	f.Add(``, `0:`)
	f.Fuzz(func(t *testing.T, before, after string) {
		var from, to map[string]any
		if yaml.Unmarshal([]byte(before), &from) != nil || yaml.Unmarshal([]byte(after), &to) != nil {
			t.Skip("no objects")
		}
		all := differences(from, to, false)
		if left := differences(portion.Make(from, to, all, nil), to, false); len(left) > 0 {
			t.Errorf("still different: %v", left)
		}
		for i := range all {
			portion.Make(from, to, all[i:i+1], slices.Delete(slices.Clone(all), i, i+1))
		}
	})
}
