package engine_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Those of a percentage are among those of a larger one, whichever objects there are beside them, and
// another seed chooses others.
func TestScopeChoosesAPercentageOfObjects(t *testing.T) {
	const all = 5000
	chosen := func(percent int, seed string) map[string]bool {
		out := map[string]bool{}
		for i := range all {
			k := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "shop", Name: fmt.Sprint(i), UID: "by name alone"}
			if (&engine.Scope{Percent: percent, Seed: seed}).InPercent(k) {
				out[k.Name] = true
			}
		}
		return out
	}
	before := map[string]bool{}
	for _, percent := range []int{1, 10, 20, 50, 99} {
		now := chosen(percent, "")
		if want := all * percent / 100; len(now) < want*8/10-20 || len(now) > want*12/10+20 {
			t.Errorf("%d %% of %d objects are %d", percent, all, len(now))
		}
		for name := range before {
			if !now[name] {
				t.Errorf("%s is not among %d %%", name, percent)
			}
		}
		before = now
	}
	if n := len(chosen(100, "")); n != all {
		t.Errorf("100 %% are %d", n)
	}
	other, same := chosen(10, "other"), 0
	for name := range chosen(10, "") {
		if other[name] {
			same++
		}
	}
	if same == len(other) || same > len(other)/2 {
		t.Errorf("another seed chooses %d of %d again", same, len(other))
	}
}
