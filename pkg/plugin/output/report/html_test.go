package report_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

// island is what the script reads.
type island struct {
	Changes []*told
	Members [][]any
}

type told struct {
	ID          int
	Level, Kind string
	Fields      int
	Diff        string // on a line of its own
	Rules       []struct {
		Name, Origin string
		Fields       []struct{ Path, From, To string }
	}
}

// dataOf is the text of the data.
func dataOf(t *testing.T, page string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, `<script type="application/gzip" id="data">`)
	text, _, closed := strings.Cut(rest, "</script>")
	if !ok || !closed {
		t.Fatal("the page has no data")
	}
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func islandOf(t *testing.T, page string) island {
	t.Helper()
	changes, members, ok := strings.Cut(dataOf(t, page), "\n\n")
	if !ok {
		t.Fatal("the data have no members")
	}
	var out island
	decode := func(text string, into any) {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("no JSON: %v: %s", err, text)
		}
	}
	lines := strings.Split(changes, "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		c := &told{}
		decode(lines[i], c)
		decode(lines[i+1], &c.Diff)
		out.Changes = append(out.Changes, c)
	}
	for line := range strings.Lines(members) {
		var m []any
		decode(line, &m)
		out.Members = append(out.Members, m)
	}
	return out
}

func TestContentPolicy(t *testing.T) {
	page := pageOf(t, output.Options{}, review())
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("there is no content policy")
	}
	for _, element := range []string{"style", "script"} {
		_, rest, _ := strings.Cut(page, "<"+element+">")
		text, _, _ := strings.Cut(rest, "</"+element+">")
		sum := sha256.Sum256([]byte(text))
		if want := element + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy[1], want) {
			t.Errorf("the policy %q lacks %s", policy[1], want)
		}
	}
	if !strings.HasPrefix(policy[1], "default-src 'none'; ") || strings.Contains(policy[1], "unsafe") {
		t.Errorf("the policy is lax: %s", policy[1])
	}
	if found := regexp.MustCompile(`(?i)<[^>]*\s(style|on[a-z]+|src)=|(https?:)?//[a-z]+\.[a-z]|url\(|@import`).FindString(page); found != "" {
		t.Errorf("the page refers to something, or has a style or a handler in a tag: %s", found)
	}
}

func TestChangesAreGroupedAndSorted(t *testing.T) {
	page := pageOf(t, output.Options{}, review())
	data := islandOf(t, page)
	var levels []string
	for _, c := range data.Changes {
		levels = append(levels, fmt.Sprint(c.Level, " ", c.Fields))
	}
	if diff := cmp.Diff([]string{"failed 1", "warned 1", "plain 1", "plain 1", "plain 1"}, levels); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(data.Members) != 18 { // all but the object that does not change
		t.Errorf("got %d objects", len(data.Members))
	}
	static := page[strings.Index(page, `<ol id="list">`):strings.Index(page, "</ol>")]
	if n := strings.Count(static, "<details"); n != len(data.Changes) {
		t.Errorf("%d changes are there without scripts, of %d", n, len(data.Changes))
	}
	for _, want := range []string{
		"and 11 more, in 3 namespaces", `<span class="brief">kyverno team-labels/add: &#43; data.team: &#34;blue&#34;</span>`, "6 Pods would restart in total", "the expression ended in an error",
		`<code class="path">data.<wbr>team</code>`, "policies/labels.yaml:3", "-    echo one", "&#43;    echo two",
	} {
		if !strings.Contains(static, want) {
			t.Errorf("the page without scripts lacks %q", want)
		}
	}
}

// Objects in which one rule changes the same fields of other elements to other values are one change: the
// values are those of the example, and what an object has otherwise stands at it.
func TestShapes(t *testing.T) {
	var changes []engine.Change
	for i := range 300 {
		state := func(image string) map[string]any {
			return map[string]any{"containers": []any{map[string]any{"name": fmt.Sprint("c", i), "image": image}}}
		}
		c := configMap(images, "shop", fmt.Sprint("o", i), state(fmt.Sprint("web:", i)), state(fmt.Sprint("registry/web:", i)))
		changes = append(changes, warning(c, engine.ImpactRollout, "1 Pod would be replaced", "Pods would be replaced", 1))
	}
	for i := range changes[:10] {
		changes[i].Impacts = append(changes[i].Impacts, engine.Impact{Code: engine.ImpactManaged, Owner: "Helm release shop", Text: "Helm release shop manages it", Brief: "Helm manages it"})
	}
	page := pageOf(t, output.Options{Context: output.Context{Context: "production"}}, changes)
	if n := len(page); n > 100_000 {
		t.Errorf("%d bytes", n)
	}
	if n := len(islandOf(t, page).Changes); n != 2 {
		t.Errorf("%d changes, want those that are managed, and the others", n)
	}
	text := strings.Join(strings.Fields(tags.ReplaceAllString(page[:strings.Index(page, `id="data"`)], " ")), " ")
	for _, want := range []string{
		"Mutation preview on production: 300 of 300 objects would change", "290 Pods would restart",
		"! 290 Pods of 290 workloads would restart; 10 Pods of 10 workloads would restart with --include-managed. ! 10 managed: Helm manages it",
		"Objects Values replaced data. containers", "gatekeeper AssignImage pin 300 300",
		"ConfigMap shop/o10 and 289 more ! 290 Pods restart 1 field", "and 289 other values", "one of 290 values",
		"ConfigMap shop/o0 and 9 more ! rollout ! managed 1 field", "shop/o1 ~ data.containers",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// next advises to type a command.
func next(command string) func(evaluation.Summary) output.Hint {
	return func(evaluation.Summary) output.Hint { return output.Hint{Next: command} }
}

func TestHostileTextsAreText(t *testing.T) {
	page := pageOf(t, output.Options{Context: harmfulContext, Hint: next(markup)}, harmful(), errors.New(markup))
	if n := strings.Count(strings.ToLower(page), "<script"); n != 2 {
		t.Errorf("the page has %d scripts, want its data and its own one", n)
	}
	for _, tag := range []string{"<img", "<svg onload", "<!--", "<base", "<iframe", "<plaintext", "<meta http-equiv=refresh", "href=\"http", "javascript:document.title='run'\""} {
		if strings.Contains(page, tag) {
			t.Errorf("the page has %s", tag)
		}
	}
	if err := errors.Join(hostile.Terminal(page+dataOf(t, page)), hostile.Legible(page+dataOf(t, page))); err != nil {
		t.Error(err)
	}
	if got, want := len(islandOf(t, page).Changes), len(hostile.Texts()); got != want {
		t.Errorf("got %d changes, want %d", got, want)
	}
}

func TestProblemsComeFirst(t *testing.T) {
	page := pageOf(t, output.Options{}, nil, errors.New("pods may not be listed"), &engine.CompileError{Policy: "p", Err: errors.New("no such field")})
	problem, summary := strings.Index(page, "pods may not be listed"), strings.Index(page, "summary-title")
	if problem < 0 || problem > summary || !strings.Contains(page, "no such field") {
		t.Errorf("the problems are at %d, the summary at %d", problem, summary)
	}
	for _, want := range []string{"No object was evaluated", "There is nothing to show"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say: %s", want)
		}
	}
}

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
		r.Fields = append(r.Fields, compare.Field{FieldChange: f, Rules: [2]engine.RuleRef{labels, f.Rule()}})
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
			Conclusion: compare.SomeDiffer, Problems: 1, Variants: compare.VariantSummary{Compared: 200, Differ: 35, Kinds: 1},
			Counts: compare.Counts{Objects: 5, Changed: 4, Verdicts: map[compare.Verdict]int{compare.Same: 1, compare.Differs: 3, compare.NotComparable: 1}},
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
	o.Out, o.Compares = &b, true
	p := outputtest.Printer(report.NewHTML(o))
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
		"DIFFERENT: the two policy sets differ on 3 of 5 objects and 35 of 200 variants.",
		"policies/broken.yaml:3: no such field", "1 error in policies or in what was read",
		"the same 1 changed by both, not alike 3 not comparable: the result of a side is unknown 1 variants compared, of 1 kind: the two policy sets differ on 35 200",
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
		summary := compare.Summary{Conclusion: compare.SomeDiffer, Counts: compare.Counts{Objects: 1}, Rules: [2][]compare.Exercise{{{Rule: c.Steps[0].Rule, Missing: text}}}}
		return []output.Event{e, output.Problem{Err: errors.New(text)}, output.Comparison{Summary: summary}}
	}
	if got := comparisonPage(t, output.Options{Context: harmfulContext}, of(markup)); strings.Contains(got, "<script") || !strings.Contains(got, "default-src 'none'; style-src 'sha256-") ||
		strings.Contains(got, "script-src") {
		t.Error("the page has a script, or lets one run")
	}
	// The tags are those of a page whose strings are words, in the same order.
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

var (
	labels = engine.RuleRef{Dialect: "kyverno", Policy: "team-labels", Rule: "add", Origin: "policies/labels.yaml:3"}
	images = engine.RuleRef{Dialect: "gatekeeper", Policy: "AssignImage pin", Origin: "policies/images.yaml:1"}
)

// configMap is a change of one: its data before and after.
func configMap(rule engine.RuleRef, namespace, name string, before, after map[string]any) engine.Change {
	return changeOf(rule, "ConfigMap", namespace, name, before, after)
}

func changeOf(rule engine.RuleRef, kind, namespace, name string, before, after map[string]any) engine.Change {
	state := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}, "data": data,
		}}
	}
	c := engine.Change{Before: state(before), After: state(after)}
	c.Subject = engine.KeyOf(c.After)
	outcome := engine.Unchanged
	for _, f := range diff.Compare(c.Before.Object, c.After.Object, diff.Type{}) {
		f.Writer = &rule
		c.Fields = append(c.Fields, f)
		outcome = engine.Changed
	}
	c.Steps = []engine.Step{{Rule: rule, Outcome: outcome}}
	return c
}

func failing(c engine.Change, reason string) engine.Change {
	c.Steps = append(c.Steps, engine.Step{Rule: images, Outcome: engine.Failed, Err: errors.New(reason)})
	return c
}

func warning(c engine.Change, code engine.ImpactCode, text, brief string, pods int) engine.Change {
	c.Impacts = append(c.Impacts, engine.Impact{Code: code, Text: text, Brief: brief, Pods: pods, Advice: "look at it"})
	return c
}

// review is a run with a bit of everything.
func review() []engine.Change {
	var out []engine.Change
	for i := range 12 {
		out = append(out, configMap(labels, []string{"shop", "payments", "platform"}[i%3], fmt.Sprint("settings-", i),
			map[string]any{"a": "1"}, map[string]any{"a": "1", "team": "blue"}))
	}
	for i := range 3 {
		c := configMap(images, "shop", fmt.Sprint("image-", i), map[string]any{"image": "web:1"}, map[string]any{"image": "registry/web:1"})
		out = append(out, warning(c, engine.ImpactRollout, fmt.Sprint(i+1, " Pods would restart"), "Pods would restart", i+1))
	}
	out = append(out,
		configMap(labels, "shop", "script", map[string]any{"run.sh": "set -e\necho one\nexit 0\n"}, map[string]any{"run.sh": "set -e\necho two\nexit 0\n"}),
		failing(configMap(labels, "payments", "broken", map[string]any{"a": "1"}, map[string]any{"a": "2"}), "the expression ended in an error"),
		configMap(labels, "shop", "untouched", map[string]any{"a": "1"}, map[string]any{"a": "1"}),
		changeOf(labels, "Secret", "shop", "password", map[string]any{"p": "c2VjcmV0LXZhbHVl"}, map[string]any{"p": "b3RoZXItdmFsdWU="}),
	)
	return out
}

// many is a run whose changes are all different.
func many(n int) []engine.Change {
	var out []engine.Change
	for i := range n {
		out = append(out, configMap(labels, fmt.Sprint("namespace-", i%40), fmt.Sprint("object-", i),
			map[string]any{"a": "1", "b": "2", "c": "3"}, map[string]any{"a": "1", "b": fmt.Sprint("value-", i), "c": "3"}))
	}
	return out
}

// harmful is a run with a change for each hostile text, in which everything that can be chosen is it.
func harmful() []engine.Change {
	var out []engine.Change
	for i, of := range hostile.Texts() {
		text := of.Text
		rule := engine.RuleRef{Dialect: "kyverno", Policy: text, Rule: text, Via: text, Origin: text + ":3"}
		c := configMap(rule, text, text, map[string]any{text: text}, map[string]any{text: text + "2", text + "3": fmt.Sprint(i)})
		c.Steps[0].Warnings = []engine.Warning{engine.Warning(text)}
		c.Steps[0].NotIdempotent = text
		out = append(out, warning(failing(c, text), engine.ImpactCode(text), text, "", 1))
	}
	return out
}

// markup are the strings that would become markup or a script, one after the other.
var markup = func() string {
	var b strings.Builder
	for _, of := range hostile.Texts() {
		if of.Class == "HTML" || of.Class == "direction" {
			b.WriteString(of.Text)
		}
	}
	return b.String()
}()

var harmfulContext = output.Context{Context: markup, Server: markup, User: markup, Namespace: markup, Version: markup, Time: markup}

// pageOf is the page of a run.
func pageOf(t testing.TB, o output.Options, changes []engine.Change, troubles ...error) string {
	t.Helper()
	var b bytes.Buffer
	o.Out = &b
	p := outputtest.Printer(report.NewHTML(o))
	s := evaluation.NewSummary(nil)
	for i := range changes {
		s.Add(&changes[i])
		if err := p.Print(output.Evaluated{Change: &changes[i]}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range troubles {
		if err := p.Print(output.Problem{Err: err}); err != nil {
			t.Fatal(err)
		}
	}
	if err := outputtest.End(p, *s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
