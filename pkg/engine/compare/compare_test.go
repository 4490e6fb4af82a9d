package compare_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
)

func configMap(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{}}}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	u.SetNamespace("shop")
	u.SetName(name)
	return u
}

// source has pages of two objects.
type source struct {
	objects []*unstructured.Unstructured
}

func (s source) Pages(context.Context, []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for i := 0; i < len(s.objects); i += 2 {
			if !yield(source{s.objects[i:min(i+2, len(s.objects))]}, nil) {
				return
			}
		}
	}
}

func (s source) Len() int { return len(s.objects) }

func (s source) Target(i int) (engine.Target, error) {
	return engine.Target{Key: engine.KeyOf(s.objects[i]), Object: s.objects[i], OldObject: s.objects[i]}, nil
}

// program is a program of one rule, which does what is to be done to an object by name.
type program struct {
	name string
	does map[string]engine.Step
	sets map[string]string // the value of data.x
	on   engine.Operation  // the only one that the rule is for; empty for any
}

func (p program) ref() engine.RuleRef     { return engine.RuleRef{Policy: p.name} }
func (p program) Rules() []engine.RuleRef { return []engine.RuleRef{p.ref()} }
func (p program) Selections() []engine.Selection {
	return []engine.Selection{{Version: "v1", Kind: "ConfigMap"}}
}

func (p program) Describe() []engine.Description {
	return []engine.Description{{Rule: p.ref(), Matches: p.Selections()}}
}

func (p program) Evaluate(_ context.Context, t engine.Target, _ *engine.World, s engine.Sink) (*unstructured.Unstructured, error) {
	step, ok := p.does[t.Key.Name]
	value, sets := p.sets[t.Key.Name]
	step.Rule = p.ref()
	switch {
	case t.Request.Reinvocation:
		return t.Object, nil
	case p.on != "" && p.on != t.Request.Operation, !ok && !sets:
		step.Outcome = engine.NotMatched
	case sets:
		step.Outcome, step.After = engine.Changed, with(t.Object, value)
		s.Step(step)
		return step.After, nil
	}
	s.Step(step)
	return t.Object, nil
}

func with(u *unstructured.Unstructured, value string) *unstructured.Unstructured {
	out := maps.Clone(u.Object)
	out["data"] = map[string]any{"x": value}
	return &unstructured.Unstructured{Object: out}
}

func run(t *testing.T, s source, operations []engine.Operation, oldSide, newSide program) ([]string, compare.Summary) {
	t.Helper()
	world, err := snapshot.Load(engine.Documents(s.objects...), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := compare.NewComparison([2][]engine.Program{{oldSide}, {newSide}}, &engine.World{Reader: world}, compare.Options{Operations: operations})
	tally := c.NewTally()
	var out []string
	if err := c.Prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	err = c.Run(t.Context(), s, func(r *compare.Result) error {
		tally.Add(r, func(err error) string { return err.Error() })
		line := r.Subject.Name + " " + string(r.Verdict) + fmt.Sprint(r.Operations)
		for _, f := range r.Fields {
			line += fmt.Sprintf(" %s: %v by %q, %v by %q", engine.PathString(f.Path), f.From, f.Rules[compare.Old].Policy, f.To, f.Rules[compare.New].Policy)
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, tally.Summary(c, [2][]engine.Description{}, nil)
}

func TestRunComparesWhatComesOut(t *testing.T) {
	s := source{}
	for _, name := range []string{"alike", "both", "denied", "failed", "new", "old", "unsupported"} {
		s.objects = append(s.objects, configMap(name))
	}
	reason := errors.New("reason")
	oldSide := program{
		name: "o", sets: map[string]string{"alike": "1", "both": "1", "old": "1"},
		does: map[string]engine.Step{"failed": {Outcome: engine.Failed, Err: reason}, "new": {Outcome: engine.Skipped, Err: reason}, "unsupported": {Outcome: engine.Unsupported, Err: reason}},
	}
	newSide := program{
		name: "n", sets: map[string]string{"alike": "1", "both": "2", "new": "2"},
		does: map[string]engine.Step{"denied": {Outcome: engine.Denied, Err: reason}},
	}
	got, summary := run(t, s, nil, oldSide, newSide)
	want := []string{
		"alike same[UPDATE]",
		`both differs[UPDATE] data.x: 1 by "o", 2 by "n"`,
		"denied only-new-denies[UPDATE]",
		"failed same[UPDATE]", // a rule that fails changes nothing
		`new only-new-changes[UPDATE] data.x: <nil> by "", 2 by "n"`,
		`old only-old-changes[UPDATE] data.x: 1 by "o", <nil> by ""`,
		"unsupported not-comparable[UPDATE]",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if summary.Conclusion != compare.SomeDiffer || summary.Failed != 1 || summary.Objects != 7 || summary.Changed != 4 {
		t.Errorf("summary %+v", summary)
	}
	e := summary.Rules[compare.Old][0]
	if e.Matched() != 6 || !e.Exercised() || e.HeldBack["reason"] != 1 {
		t.Errorf("exercise %+v", e)
	}
}

func TestRunComparesEachRequest(t *testing.T) {
	s := source{objects: []*unstructured.Unstructured{configMap("a"), configMap("b"), configMap("c")}}
	sets := map[string]string{"a": "1", "c": "1"}
	both := []engine.Operation{engine.OperationUpdate, engine.OperationCreate}
	got, _ := run(t, s, both, program{name: "o", sets: sets, on: engine.OperationCreate}, program{name: "n", sets: sets})
	want := []string{
		`a only-new-changes[UPDATE] data.x: <nil> by "", 1 by "n"`, "b same[UPDATE CREATE]",
		`c only-new-changes[UPDATE] data.x: <nil> by "", 1 by "n"`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestRunEndsWithTheErrorOfEmit(t *testing.T) {
	s := source{objects: []*unstructured.Unstructured{configMap("a"), configMap("b"), configMap("c")}}
	c := compare.NewComparison([2][]engine.Program{{program{name: "o"}}, {program{name: "n"}}}, &engine.World{}, compare.Options{})
	stop, seen := errors.New("stop"), 0
	err := c.Run(t.Context(), s, func(*compare.Result) error { seen++; return stop })
	if !errors.Is(err, stop) || seen != 1 {
		t.Errorf("%v after %d objects", err, seen)
	}
}

// A side without an exercised rule is not exercised, and says what is missing.
func TestSummaryNamesWhatIsMissing(t *testing.T) {
	s := source{objects: []*unstructured.Unstructured{configMap("a")}}
	_, summary := run(t, s, nil, program{name: "o"}, program{name: "n", does: map[string]engine.Step{"a": {Outcome: engine.Unchanged}}})
	if summary.Conclusion != compare.NotExercised || summary.Unexercised() != 2 {
		t.Errorf("summary %+v", summary)
	}
	got := []string{summary.Rules[compare.Old][0].Missing, summary.Rules[compare.New][0].Missing}
	if d := cmp.Diff([]string{"an object that it matches", "an object that it changes: those that it matched are as it wants"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// The summaries of comparisons on several sets of objects are that of one comparison on all of them.
func TestJoin(t *testing.T) {
	rule, other := engine.RuleRef{Policy: "p", Rule: "r"}, engine.RuleRef{Policy: "p", Rule: "s"}
	one := compare.Summary{
		Counts: compare.Counts{Objects: 2, Changed: 1, Verdicts: map[compare.Verdict]int{compare.Same: 2}}, Operations: []engine.Operation{engine.OperationUpdate},
		Rules: [2][]compare.Exercise{{{Rule: rule, Outcomes: map[engine.Outcome]int{engine.NotMatched: 2}, Missing: "an object that it matches"}}},
	}
	two := compare.Summary{
		Counts:   compare.Counts{Objects: 3, Changed: 2, Verdicts: map[compare.Verdict]int{compare.Same: 1, compare.Differs: 2}},
		Problems: 1, Operations: []engine.Operation{engine.OperationUpdate, engine.OperationCreate},
		Rules: [2][]compare.Exercise{{
			{Rule: rule, Outcomes: map[engine.Outcome]int{engine.Skipped: 3}, HeldBack: map[string]int{"why": 3}, Missing: "an object that no condition holds it back from"},
			{Rule: other, Outcomes: map[engine.Outcome]int{engine.Changed: 2}},
		}},
	}
	var all compare.Summary
	for _, s := range []*compare.Summary{&one, &two, &one} {
		all.Join(s)
	}
	want := compare.Summary{
		Conclusion: compare.SomeDiffer, Problems: 1,
		Counts:     compare.Counts{Objects: 7, Changed: 4, Verdicts: map[compare.Verdict]int{compare.Same: 5, compare.Differs: 2}},
		Operations: two.Operations,
		Rules: [2][]compare.Exercise{{
			{Rule: rule, Outcomes: map[engine.Outcome]int{engine.NotMatched: 4, engine.Skipped: 3}, HeldBack: map[string]int{"why": 3}, Missing: "an object that no condition holds it back from"},
			{Rule: other, Outcomes: map[engine.Outcome]int{engine.Changed: 2}, HeldBack: map[string]int{}},
		}},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if one.Verdicts[compare.Same] != 2 || one.Rules[0][0].Outcomes[engine.NotMatched] != 2 {
		t.Error("a summary that was added is modified")
	}
}

// Variants that are not comparable leave open whether the sides do the same.
func TestUnknownVariantsLeaveItOpen(t *testing.T) {
	changed := []compare.Exercise{{Outcomes: map[engine.Outcome]int{engine.Changed: 1}}}
	for unknown, want := range []compare.Conclusion{compare.AllSame, compare.SameAsTested} {
		s := compare.Summary{Counts: compare.Counts{Objects: 1}, Rules: [2][]compare.Exercise{changed, changed}}
		s.Join(&compare.Summary{Variants: compare.VariantSummary{Compared: 2, Unknown: unknown}})
		if s.Conclusion != want {
			t.Errorf("%d unknown variants: %s, want %s", unknown, s.Conclusion, want)
		}
	}
}
