package kyverno

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

// naming is a case of testdata/parts/naming.txtar: an entry of mutate.targets, the objects
// that it names for a trigger, and those that it names without one.
type naming struct {
	Target    map[string]any
	Namespace string         // of a Policy
	Names     map[string]any // that variables see
	Unmapped  bool           // there is nothing to tell kinds without namespaces
	Warning   string
	Want      string // the objects, or why they cannot be named
	Described string // left out where it is Want
}

func TestTargetNaming(t *testing.T) {
	conformance.EachCase(t, "testdata/parts/naming.txtar", func(t *testing.T, c *naming) {
		var warning string
		r := &policydecode.Report{Namespace: c.Namespace, Warn: func(e engine.CompileError) { warning = e.Field + ": " + e.Err.Error() }}
		entry := decodeTarget(policydecode.Node{Report: r, Path: "spec.rules[0].mutate.targets[0]", Value: c.Target})
		if err := r.Err(); err != nil || warning != c.Warning {
			t.Fatalf("errors %v, warning %q", err, warning)
		}
		if got := c.subjects(t, entry); got != c.Want {
			t.Errorf("names %s\nwant  %s", got, c.Want)
		}
		if c.Described == "" {
			c.Described = c.Want
		}
		if got := selectionName(entry.described()); got != c.Described {
			t.Errorf("described as %s\nwant         %s", got, c.Described)
		}
	})
}

func (c *naming) subjects(t *testing.T, entry *target) string {
	s := variables.NewScope(jmespath.New(time.Unix(0, 0), 1, nil))
	for name, value := range c.Names {
		s.Set(name, value)
	}
	empty, err := snapshot.Load(nil, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mapper := empty.Mapper()
	if c.Unmapped {
		mapper = nil
	}
	selection, err := entry.subjects(s, mapper)
	if err == nil {
		return selectionName(selection)
	}
	var failed *RuleError
	if !errors.As(err, &failed) {
		t.Errorf("%v is no *RuleError", err)
	}
	return err.Error()
}

func selectionName(s engine.Selection) string {
	out := fmt.Sprintf("%s/%s/%s", s.Group, s.Version, s.Kind)
	if s.Subresource != "" {
		out += "/" + s.Subresource
	}
	if s.Namespace+s.Name != "" {
		out += fmt.Sprintf(" %s/%s", s.Namespace, s.Name)
	}
	if s.Labels != nil {
		out += fmt.Sprintf(" with %v", s.Labels.MatchLabels)
	}
	return out
}

// mistake is a case of testdata/parts/target-mistakes.txtar: what is said about targets that are
// not written as they should be.
type mistake struct {
	Targets []any
	Want    []string
}

func TestTargetMistakes(t *testing.T) {
	conformance.EachCase(t, "testdata/parts/target-mistakes.txtar", func(t *testing.T, c *mistake) {
		checkSaid(t, c.Want, func(r *policydecode.Report) {
			list := policydecode.Node{Report: r, Path: "targets", Value: c.Targets}
			var targets []*target
			for _, n := range list.List() {
				targets = append(targets, decodeTarget(n))
			}
			lintTargetKinds(list, targets)
		})
	})
}

// checkSaid compares what is reported when a part of a policy is decoded.
func checkSaid(t *testing.T, want []string, decode func(*policydecode.Report)) {
	t.Helper()
	var said []string
	r := &policydecode.Report{Warn: func(e engine.CompileError) { said = append(said, "warning: "+e.Field+": "+e.Err.Error()) }}
	decode(r)
	for _, err := range r.Errs {
		var e *engine.CompileError
		if !errors.As(err, &e) {
			t.Fatalf("%v is no CompileError", err)
		}
		said = append(said, e.Field+": "+e.Err.Error())
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A run keeps all effects until their targets are changed, but of a trigger only what a target needs. To name
// it needs nothing.
func TestEffectsKeepNoTriggerThatTheyDoNotUse(t *testing.T) {
	for name, want := range map[string]bool{"doc-mutate-12-existing-secret": false, "targets-trigger-stays": true} {
		documents, live := readCase(t, name)
		program, err := New().Compile(engine.Compilation{Documents: documents})
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := conformance.NewCluster(live, nil, engine.Request{})
		if err != nil {
			t.Fatal(err)
		}
		propagator, ok := program.(engine.Propagator)
		if !ok {
			t.Fatalf("%s names no targets", name)
		}
		trigger := conformance.TargetOf(live[0].DeepCopy())
		kept := weak.Make(trigger.Object)
		effects, err := propagator.Effects(t.Context(), trigger, cluster.World, outcomes{had: map[string]int{}})
		if err != nil || len(effects) != 1 {
			t.Fatalf("%s has effects %v: %v", name, effects, err)
		}
		trigger = engine.Target{}
		runtime.GC()
		if got := kept.Value() != nil; got != want {
			t.Errorf("%s keeps its trigger: %v", name, got)
		}
		runtime.KeepAlive(effects)
	}
}
