package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

func TestRuleSet(t *testing.T) {
	list := make([]engine.RuleRef, 4)
	for i, name := range []string{"a", "b", "c", "d"} {
		list[i].Policy = name
	}
	names := func(s engine.RuleSet) (out []string) {
		for r := range s.All() {
			out = append(out, r.Policy)
		}
		return out
	}
	var s engine.RuleSet
	s.Add(engine.RuleRef{Policy: "x"})
	s.AddList(engine.RuleList{List: list, Except: []int{0, 1}})
	before := s
	s.Join(engine.RuleSet{Lists: []engine.RuleList{{List: list, Except: []int{1, 2}}}})
	without := s.Without(func(r engine.RuleRef) bool { return r.Policy == "x" || r.Policy == "c" })
	for _, test := range []struct {
		set  engine.RuleSet
		want []string
	}{
		{before, []string{"x", "c", "d"}},
		{s, []string{"x", "a", "c", "d"}},
		{without, []string{"a", "d"}},
		{engine.RuleSet{}, nil},
	} {
		if got := names(test.set); !slices.Equal(got, test.want) || test.set.Len() != len(test.want) || test.set.IsZero() != (len(test.want) == 0) {
			t.Errorf("%v of %d rules, want %v", got, test.set.Len(), test.want)
		}
		for _, r := range list {
			if got, want := test.set.Has(r), slices.Contains(test.want, r.Policy); got != want {
				t.Errorf("%v has %s: %v", test.want, r.Policy, got)
			}
		}
	}
	text, err := json.Marshal(s)
	var read engine.RuleSet
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if diff := cmp.Diff(names(s), names(read)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
