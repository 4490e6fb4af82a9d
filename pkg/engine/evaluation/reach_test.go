package evaluation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// pointing is a program of one rule that is triggered by ConfigMaps, as outcomes
// say by the first word of their names, and acts on what they point to.
type pointing struct {
	rule
	targets []engine.Selection
}

func (pointing) Evaluate(_ context.Context, t engine.Target, _ *engine.World, _ engine.Sink) (*unstructured.Unstructured, error) {
	return t.Object, nil
}

func (pointing) Propagates() bool { return true }

func (p pointing) Describe() []engine.Description {
	return []engine.Description{
		{Rule: engine.RuleRef{Policy: "ordinary"}, Existing: engine.OnAdmission},
		{Rule: p.ref(), Matches: []engine.Selection{
			{Version: "v1", Kind: "ConfigMap", Name: "trigger-*"}, {Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "other"},
		}, Existing: engine.ByTrigger},
	}
}

func (p pointing) Effects(_ context.Context, t engine.Target, _ *engine.World, s engine.Sink) ([]engine.Effect, error) {
	step := engine.Step{Rule: p.ref(), TriggeredBy: &t.Key}
	switch word, _, _ := strings.Cut(t.Key.Name, "-"); word {
	case "trigger":
		var out []engine.Effect
		for _, target := range p.targets {
			out = append(out, appender{p.rule, target}.append(t.Key))
		}
		return out, nil
	case "held":
		step.Outcome, step.Err = engine.Skipped, errors.New("a precondition does not hold")
	case "broken":
		step.Outcome, step.Err = engine.Failed, errors.New("no such variable")
	default:
		step.Outcome, step.Err = engine.NotMatched, errors.New("names: wants trigger-*, is "+t.Key.Name)
	}
	s.Step(step)
	return nil, nil
}

func labelled(u *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	u.SetLabels(map[string]string{key: value})
	return u
}

func secretObject(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": "default"},
	}}
}

// reasons are the reasons given for the object that is asked about, by outcome.
func reasons(t *testing.T, w world, o evaluation.Options, p engine.Program) []string {
	t.Helper()
	e := evaluation.New([]engine.Program{p}, &engine.World{Reader: w}, o)
	if err := e.Prepare(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	var out []string
	err := e.Run(t.Context(), w[:1], func(c *engine.Change) error {
		for _, s := range c.Steps {
			// What it does as a trigger, or what becomes of its subresources, is not the question.
			if s.Trigger().Named() != c.Subject.Named() && c.Subject.Subresource == "" {
				out = append(out, strings.TrimSuffix(fmt.Sprintf("%s %s: %v", c.Subject, s.Outcome, s.Err), ": <nil>"))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReasonsOfUntriggeredRules(t *testing.T) {
	asked := func() *unstructured.Unstructured { return labelled(configMap("asked"), "app", "db") }
	named := func(ns, name string) engine.Selection {
		return engine.Selection{Version: "v1", Kind: "ConfigMap", Namespace: ns, Name: name}
	}
	byLabel := named("default", "")
	byLabel.Labels = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

	for name, tc := range map[string]struct {
		others  world
		targets []engine.Selection
		want    string
	}{
		"none is a trigger of it": {
			others: world{secretObject("s"), configMap("third")},
			want:   "no object triggers the rule: its triggers are ConfigMap trigger-*, ConfigMap default/other, and the run saw none",
		},
		"one that could does not match": {
			others: world{secretObject("s"), configMap("other")},
			want:   "no object triggers the rule, of 1 that could: ConfigMap default/other: does not match: names: wants trigger-*, is other",
		},
		"one is skipped, which is nearer than not to match": {
			others: world{configMap("other"), configMap("held-1"), configMap("held-2")},
			want:   "no object triggers the rule, of 3 that could: ConfigMap default/held-1: skipped: a precondition does not hold",
		},
		"another name": {
			others: world{configMap("trigger-1")}, targets: []engine.Selection{named("default", "settings")},
			want: "its one trigger does not name it as a target: ConfigMap default/trigger-1 names ConfigMap default/settings (name: wants settings, is asked)",
		},
		"the nearest of several": {
			others:  world{configMap("trigger-1"), configMap("trigger-2")},
			targets: []engine.Selection{{Version: "v1", Kind: "Secret", Name: "asked"}, named("shop", "settings"), named("default", "settings")},
			want:    "none of 2 triggers names it as a target: ConfigMap default/trigger-1 names ConfigMap default/settings (name: wants settings, is asked)",
		},
		"other labels": {
			others: world{configMap("trigger-1")}, targets: []engine.Selection{byLabel},
			want: "its one trigger does not name it as a target: ConfigMap default/trigger-1 names ConfigMap in default with app=web (labels: wants app=web, is app=db)",
		},
		"a trigger that fails": {
			others: world{configMap("trigger-1"), configMap("broken-1"), configMap("broken-2")}, targets: []engine.Selection{named("default", "settings")},
			want: "its one trigger does not name it as a target: ConfigMap default/trigger-1 names ConfigMap default/settings (name: wants settings, is asked); " +
				"what another one names is not known: ConfigMap default/broken-1: failed: no such variable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := pointing{rule: rule{name: "p"}, targets: tc.targets}
			got := reasons(t, append(world{asked()}, tc.others...), evaluation.Options{Reasons: true, Scope: only("asked")}, p)
			if d := cmp.Diff([]string{"ConfigMap default/asked not-matched: " + tc.want}, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReasonsLeaveOutTriggersOfRulesThatAct(t *testing.T) {
	w := world{configMap("settings"), configMap("trigger-1"), configMap("other")}
	p := pointing{rule: rule{name: "p", key: "names"}, targets: []engine.Selection{{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "settings"}}}
	for _, why := range []bool{false, true} {
		e := evaluation.New([]engine.Program{p}, &engine.World{Reader: w}, evaluation.Options{Reasons: why})
		if err := e.Prepare(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		notMatched := map[string]int{}
		err := e.Run(t.Context(), w, func(c *engine.Change) error {
			if notMatched[c.Subject.Name] = 0; !why {
				notMatched[c.Subject.Name] = c.NotMatched() - 1 // which is the ordinary one
			}
			for _, s := range c.Steps {
				if s.Outcome == engine.NotMatched && s.Trigger().Named() == c.Subject.Named() {
					notMatched[c.Subject.Name]++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string]int{"settings": 0, "trigger-1": 0, "other": 1}, notMatched); d != "" {
			t.Errorf("reasons %t: %s", why, d)
		}
	}
}

// only is the choice of one ConfigMap.
func only(name string) *engine.Scope {
	return &engine.Scope{Only: []engine.ObjectKey{{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Name: name}}}
}
