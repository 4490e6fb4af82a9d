package html_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/html"
)

// compared is the event of an object of which the sides make two things.
func compared(v compare.Verdict, namespace, name string, oldData, newData map[string]any) output.Compared {
	c := configMap(images, namespace, name, oldData, newData)
	return comparedAs(v, &c)
}

func comparedAs(v compare.Verdict, c *engine.Change) output.Compared {
	old, changed := *c, *c
	old.After, changed.Before = c.Before, c.Before
	old.Steps = []engine.Step{{Rule: labels, Outcome: engine.Changed}}
	r := &compare.Result{
		Subject: c.Subject, Verdict: v, Operations: []engine.Operation{engine.OperationUpdate}, Everywhere: true,
		Changes: [2]*engine.Change{compare.Old: &old, compare.New: &changed},
	}
	for _, f := range c.Fields {
		r.Fields = append(r.Fields, compare.Field{FieldChange: f, Rules: [2]engine.RuleRef{labels, f.Rule}})
	}
	return output.Compared{Result: r, Difference: r.Difference()}
}

// comparison is one with a bit of everything.
func comparison() []output.Event {
	var events []output.Event
	for i := range 3 {
		events = append(events, compared(compare.Differs, "shop", fmt.Sprint("settings-", i), map[string]any{"team": "blue"}, map[string]any{"team": "green"}))
	}
	variant := compared(compare.OnlyNewChanges, "minimal", "minimal", map[string]any{}, map[string]any{"team": "green"})
	variant.Variant = &compare.Variant{Count: 35, Kinds: []string{"ConfigMap"}, Object: variant.Changes[compare.Old].Before}
	unknown := configMap(images, "shop", "broken", map[string]any{}, map[string]any{})
	unknown = failing(unknown, "the expression ended in an error")
	return append(
		events, variant, comparedAs(compare.NotComparable, &unknown), compared(compare.Same, "shop", "equal", map[string]any{}, map[string]any{}),
		output.Problem{Err: errors.New("policies/broken.yaml:3: no such field")},
		output.Comparison{Summary: compare.Summary{
			Conclusion: compare.SomeDiffer, Objects: 5, Changed: 4, Problems: 1, Variants: compare.VariantSummary{Compared: 200, Differ: 35, Kinds: 1},
			Verdicts: map[compare.Verdict]int{compare.Same: 1, compare.Differs: 3, compare.NotComparable: 1},
			Rules: [2][]compare.Exercise{
				{{Rule: labels, Outcomes: map[engine.Outcome]int{engine.Changed: 4, engine.NotMatched: 1}}},
				{{Rule: images, Outcomes: map[engine.Outcome]int{engine.Skipped: 2}, HeldBack: map[string]int{"the label tier is not web": 2}, Missing: "an object that no condition holds it back from"}},
			},
		}},
	)
}

func comparisonPage(t testing.TB, o output.Options, events []output.Event) string {
	t.Helper()
	var b bytes.Buffer
	o.Out = &b
	p := outputtest.Printer(html.NewComparison(o))
	for _, e := range events {
		if err := p.Print(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var tags = regexp.MustCompile(`(?s)<style>.*?</style>|<[^>]*>`)

func TestComparisonTellsAll(t *testing.T) {
	page := comparisonPage(t, output.Options{}, comparison())
	text := strings.Join(strings.Fields(tags.ReplaceAllString(page, " ")), " ")
	for _, want := range []string{
		"DIFFERENT: the two sides do not make the same of 38 of 5 objects and 200 variants.",
		"policies/broken.yaml:3: no such field", "1 error in policies or in what was read",
		"the same 1 changed by both, not alike 3 not comparable: what a side makes of them is not known 1 variants compared, of 1 kind: the sides do not make the same of 35 200",
		"old kyverno team-labels/add policies/labels.yaml:3 4 0 4 0",
		"Not exercised: missing is an object that no condition holds it back from Held back on 2: the label tier is not web",
		"ConfigMap shop/settings-0 and 2 more ! both change it, not alike in 1 field",
		"old: kyverno team-labels/add; new: gatekeeper AssignImage pin replaced data. team &#34;blue&#34; → &#34;green&#34;",
		"shop/settings-0 shop/settings-1 shop/settings-2",
		"✕ not comparable", "new: gatekeeper AssignImage pin ✕ failed policies/images.yaml:1 the expression ended in an error",
		"! only the new policies change it: 1 field a variant", "Shown by 35 variants (ConfigMap). The smallest object that shows it: apiVersion: v1 data: {} kind: ConfigMap",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "equal") {
		t.Error("an object that comes out the same is listed")
	}
	if strings.Count(text, "both change it") != 1 {
		t.Error("a difference is listed twice")
	}
}

func TestComparisonHasNoScript(t *testing.T) {
	of := func(text string) []output.Event {
		c := configMap(engine.RuleRef{Dialect: "kyverno", Policy: text, Rule: text}, text, text, map[string]any{text: text}, map[string]any{text: text + "2"})
		c = failing(c, text)
		e := comparedAs(compare.Differs, &c)
		e.Variant = &compare.Variant{Count: 1, Kinds: []string{text}, Object: c.After, Beside: []*unstructured.Unstructured{c.Before}}
		summary := compare.Summary{Conclusion: compare.SomeDiffer, Objects: 1, Rules: [2][]compare.Exercise{{{Rule: c.Steps[0].Rule, Missing: text}}}}
		return []output.Event{e, output.Problem{Err: errors.New(text)}, output.Comparison{Summary: summary}}
	}
	if got := comparisonPage(t, output.Options{Context: harmfulContext}, of(markup)); strings.Contains(got, "<script") || !strings.Contains(got, "default-src 'none'; style-src 'sha256-") ||
		strings.Contains(got, "script-src") {
		t.Error("the page has a script, or lets one run")
	}
	// The tags are those of a page whose texts are words, in the same order.
	ordinary := regexp.MustCompile(`<[a-z/!][^>]*>`)
	want := tagsOf(ordinary, comparisonPage(t, output.Options{}, of("word")))
	for _, text := range hostile.Texts() {
		if text.Class != "HTML" {
			continue
		}
		for name := range tagsOf(ordinary, comparisonPage(t, output.Options{}, of(text.Text))) {
			if !want[name] {
				t.Errorf("%q brings the element %s", text.Text, name)
			}
		}
	}
}

// tagsOf are the tags of a page without their attributes.
func tagsOf(tag *regexp.Regexp, page string) map[string]bool {
	out := map[string]bool{}
	for _, text := range tag.FindAllString(page, -1) {
		out[strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '>' })[0]] = true
	}
	return out
}
