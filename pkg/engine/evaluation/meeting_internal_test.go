package evaluation

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// A meeting finds what a comparison with each selection finds, in their order.
func TestMeeting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	random := func() engine.Selection {
		return engine.Selection{
			Group: pick("", "apps", "*"), Kind: pick("Pod", "Deployment", "*"), Resource: pick("", "", "pods"),
			Namespace: pick("", "n", "m", "n*", "*"), Name: pick("", "a", "b", "a*", "*"),
		}
	}
	found := 0
	for range 2000 {
		all := make([]engine.Selection, r.IntN(20))
		for i := range all {
			all[i] = random()
		}
		s, m := random(), newMeeting(all)
		var want []engine.Selection
		for _, one := range all {
			if one.MayMeet(s) {
				want = append(want, one)
			}
		}
		if diff := cmp.Diff(want, m.with(s)); diff != "" || m.meets(s) != (len(want) > 0) {
			t.Fatalf("%v among %v (-want +got):\n%s", s, all, diff)
		}
		found += len(want)
	}
	if found == 0 {
		t.Error("none ever meets another one")
	}
}
