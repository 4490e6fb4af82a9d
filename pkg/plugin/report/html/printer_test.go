package html_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/report/html"
)

// hostile are texts that would do harm where markup, script or bytes are taken from them.
var hostile = []string{
	`</script><script>document.title="run"</script>`,
	`<img src=x onerror='document.title="run"'>`,
	`"><svg onload=document.title="run">`,
	`javascript:document.title="run"`,
	"{{.}}${document.title='run'}",
	"<!--<script>",
	"bidi \u202eback\u202c zero\u200bwidth \u2028 line",
	"bell\a escape\x1b[31m null\x00 bad\xff",
	strings.Repeat("very-long-", 400),
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
	for _, f := range fielddiff.Compare(c.Before.Object, c.After.Object, fielddiff.Type{}) {
		c.Fields = append(c.Fields, engine.FieldChange{Field: f, Rule: rule})
		outcome = engine.Changed
	}
	c.Steps = []engine.Step{{Rule: rule, Subject: c.Subject, Outcome: outcome}}
	return c
}

func failing(c engine.Change, reason string) engine.Change {
	c.Steps = append(c.Steps, engine.Step{Rule: images, Subject: c.Subject, Outcome: engine.Failed, Err: errors.New(reason)})
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

// harmful is a run in which everything that can be chosen is hostile.
func harmful() []engine.Change {
	var out []engine.Change
	for _, text := range hostile {
		rule := engine.RuleRef{Dialect: "kyverno", Policy: text, Rule: text, Via: text, Origin: text}
		c := configMap(rule, text, text, map[string]any{text: text}, map[string]any{text: text + "2", text + "3": text})
		c.Steps[0].Warnings = []engine.Warning{engine.Warning(text)}
		c.Steps[0].NotIdempotent = text
		out = append(out, warning(failing(c, text), engine.ImpactCode(text), text, "", 1))
	}
	return out
}

var harmfulContext = render.Context{Context: hostile[0], Server: hostile[1], User: hostile[2], Namespace: hostile[6], Version: hostile[0]}

// pageOf is the page of a run.
func pageOf(t testing.TB, o render.Options, changes []engine.Change, troubles ...error) string {
	t.Helper()
	var b bytes.Buffer
	o.Out = &b
	p := html.New(o)
	s := engine.NewSummary(nil)
	for i := range changes {
		s.Add(&changes[i])
		if err := p.Print(changes[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range troubles {
		if err := p.Trouble(err); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(*s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// island is what the script reads.
type island struct {
	Changes []*told
	Members [][]any
}

type told struct {
	ID                int
	Level, Kind, Verb string
	Fields            int
	Diff              string // on a line of its own
	Rules             []struct {
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

func TestContentPolicyAllowsThePagesOwnScriptAndStyleAlone(t *testing.T) {
	page := pageOf(t, render.Options{}, review())
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

func TestObjectsThatChangeAlikeAreOneChangeAndWhatNeedsAttentionComesFirst(t *testing.T) {
	page := pageOf(t, render.Options{}, review())
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
		"and 11 more, in 3 namespaces", `<span class="brief">kyverno team-labels/add: data.team</span>`, "6 Pods would restart in all", "the expression ended in an error",
		`<code class="path">data.team</code>`, "policies/labels.yaml:3", "-    echo one", "&#43;    echo two",
	} {
		if !strings.Contains(static, want) {
			t.Errorf("the page without scripts lacks %q", want)
		}
	}
}

func TestEveryFieldSaysWhoWroteIt(t *testing.T) {
	for _, c := range islandOf(t, pageOf(t, render.Options{}, review())).Changes {
		fields := 0
		for _, r := range c.Rules {
			if len(r.Fields) > 0 && (r.Name == "" || r.Origin == "") {
				t.Errorf("change %d: the rule of %v has no name or no origin", c.ID, r.Fields)
			}
			fields += len(r.Fields)
		}
		if fields != c.Fields {
			t.Errorf("change %d: %d fields have a writer, of %d", c.ID, fields, c.Fields)
		}
	}
}

func TestValuesOfSecretsAreMasked(t *testing.T) {
	given := append(review(), failing(
		configMap(labels, "shop", "copy", map[string]any{"a": "1"}, map[string]any{"a": "secret-value"}), "cannot use secret-value"))
	if got := pageOf(t, render.Options{ShowSecrets: true}, given); !strings.Contains(got, "secret-value") {
		t.Error("the value is not there even where it may be")
	}
	// The copy comes after the Secret, so that its value is known.
	got := pageOf(t, render.Options{}, given)
	got += dataOf(t, got)
	for _, value := range []string{"secret-value", "c2VjcmV0LXZhbHVl", "b3RoZXItdmFsdWU"} {
		if strings.Contains(got, value) {
			t.Errorf("the page shows %s", value)
		}
	}
}

func TestHostileTextsStayTexts(t *testing.T) {
	page := pageOf(t, render.Options{Context: harmfulContext, Next: hostile[0]}, harmful(), errors.New(hostile[0]))
	if n := strings.Count(strings.ToLower(page), "<script"); n != 2 {
		t.Errorf("the page has %d scripts, want its data and its own one", n)
	}
	for _, tag := range []string{"<img", "<svg onload", "<!--"} {
		if strings.Contains(page, tag) {
			t.Errorf("the page has the tag %s", tag)
		}
	}
	for _, r := range page + dataOf(t, page) {
		if (unicode.IsControl(r) && r != '\n') || unicode.Is(unicode.Cf, r) || r == '\u2028' {
			t.Errorf("the page holds the character %U", r)
		}
	}
	if got := len(islandOf(t, page).Changes); got != len(hostile) {
		t.Errorf("got %d changes, want %d", got, len(hostile))
	}
}

func TestALongRunHasAShortPageWithoutScripts(t *testing.T) {
	page := pageOf(t, render.Options{}, many(500))
	data, static := islandOf(t, page), strings.Count(page, `<details class="change`)
	if len(data.Changes) != 500 || static != 40 || !strings.Contains(page, "The first 40 of 500 changes") {
		t.Errorf("%d changes, %d of them without scripts", len(data.Changes), static)
	}
	if !strings.Contains(page, "the first 12 of 40") {
		t.Error("the chart does not say that it leaves namespaces out")
	}
}

func TestProblemsStandAboveTheSummary(t *testing.T) {
	page := pageOf(t, render.Options{}, nil, errors.New("pods may not be listed"), &engine.CompileError{Policy: "p", Err: errors.New("no such field")})
	problem, summary := strings.Index(page, "pods may not be listed"), strings.Index(page, "summary-title")
	if problem < 0 || problem > summary || !strings.Contains(page, "no such field") {
		t.Errorf("the problems are at %d, the summary at %d", problem, summary)
	}
	if !strings.Contains(page, "There is nothing to show") {
		t.Error("the page does not say that nothing would change")
	}
}

func TestExplainTellsOfObjectsThatDoNotChange(t *testing.T) {
	given := configMap(labels, "shop", "web", map[string]any{"a": "1"}, map[string]any{"a": "1"})
	given.Steps[0].Outcome, given.Steps[0].Err = engine.Skipped, errors.New("the precondition does not hold")
	if page := pageOf(t, render.Options{}, []engine.Change{given}); strings.Contains(page, `class="reason"`) {
		t.Error("a reason is told unasked")
	}
	page := pageOf(t, render.Options{Explain: true}, []engine.Change{given})
	if !strings.Contains(page, `<p class="reason">the precondition does not hold</p>`) {
		t.Error("the reason is not told")
	}
}

func TestTheSameRunIsTheSamePage(t *testing.T) {
	if a, b := pageOf(t, render.Options{}, review()), pageOf(t, render.Options{}, review()); a != b {
		t.Errorf("-first +second:\n%s", cmp.Diff(a, b))
	}
}

// Each text colour stands out from each ground that it is used on: WCAG 2.2 wants
// 4.5 to 1 for text and 3 to 1 for what bounds a control.
func TestContrastIsEnough(t *testing.T) {
	style, err := os.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(style), 3)
	for i, name := range []string{"light", "dark", "print"} {
		colors := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]+);`).FindAllStringSubmatch(schemes[i][1], -1) {
			colors[m[1]] = m[2]
		}
		for _, pair := range []string{
			"ink page", "ink card", "soft page", "soft card", "accent page", "accent card", "add-ink add", "del-ink del",
			"warn-ink warn", "warn-ink card", "fail-ink fail", "fail-ink card", "edge page 3", "edge card 3",
		} {
			words := append(strings.Fields(pair), "4.5")
			least, _ := strconv.ParseFloat(words[2], 64)
			if got := contrast(t, colors[words[0]], colors[words[1]]); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, words[0], words[1], got, least)
			}
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance is the relative luminance that WCAG 2.2 defines.
func luminance(t *testing.T, color string) float64 {
	t.Helper()
	color = strings.TrimPrefix(color, "#")
	if len(color) == 3 {
		color = string([]byte{color[0], color[0], color[1], color[1], color[2], color[2]})
	}
	n, err := strconv.ParseUint(color, 16, 32)
	if err != nil {
		t.Fatalf("no color: %q", color)
	}
	linear := func(c uint64) float64 {
		if v := float64(c) / 255; v > 0.04045 {
			return math.Pow((v+0.055)/1.055, 2.4)
		}
		return float64(c) / 255 / 12.92
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8&255) + 0.0722*linear(n&255)
}
