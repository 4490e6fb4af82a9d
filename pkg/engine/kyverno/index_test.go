package kyverno

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// outcomes is a Sink that keeps how often each rule had each outcome.
type outcomes struct {
	reasons bool
	had     map[string]int
}

func (o outcomes) Wants(engine.Outcome) bool { return o.reasons }

func (o outcomes) Step(s engine.Step) {
	if s.Outcome != engine.NotMatched { // which the index need not say
		o.had[s.Rule.String()+" "+string(s.Outcome)]++
	}
}

// A run that wants reasons asks every rule. One that does not comes to the same, although it asks only those
// that the index names.
func TestIndexLeavesNothingOut(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) < 50 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, path := range cases {
		name := filepath.Base(path)
		documents, live := readCase(t, name[:len(name)-len(".txtar")])
		compiled, _ := New().Compile(engine.Compilation{Documents: documents}) // of broken ones, what is left
		cluster, err := conformance.NewCluster(live, nil, engine.Request{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, u := range live {
			var after [2]any
			var had [2]map[string]int
			for i, reasons := range []bool{true, false} {
				sink := outcomes{reasons, map[string]int{}}
				object, err := compiled.Evaluate(t.Context(), conformance.TargetOf(u), cluster.World, sink)
				if err != nil {
					t.Fatal(err)
				}
				effects, err := compiled.(engine.Propagator).Effects(t.Context(), conformance.TargetOf(u), cluster.World, sink)
				if err != nil {
					t.Fatal(err)
				}
				sink.had["effects"] = len(effects)
				after[i], had[i] = object.Object, sink.had
			}
			if diff := cmp.Diff(had[0], had[1]); diff != "" {
				t.Errorf("%s: %s: every rule (-), those of the index (+):\n%s", name, u.GetName(), diff)
			}
			if diff := cmp.Diff(after[0], after[1]); diff != "" {
				t.Errorf("%s: %s:\n%s", name, u.GetName(), diff)
			}
		}
	}
}
