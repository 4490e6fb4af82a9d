package html_test

import (
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

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

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
		"and 11 more, in 3 namespaces", `<span class="brief">kyverno team-labels/add: data.team</span>`, "6 Pods would restart in total", "the expression ended in an error",
		`<code class="path">data.<wbr>team</code>`, "policies/labels.yaml:3", "-    echo one", "&#43;    echo two",
	} {
		if !strings.Contains(static, want) {
			t.Errorf("the page without scripts lacks %q", want)
		}
	}
}

// An object that would change and is incomplete is one object in its bar: the part for
// what is incomplete lies over the other.
func TestBarsCountAnObjectOnce(t *testing.T) {
	a, b := map[string]any{"k": "a"}, map[string]any{"k": "b"}
	changes := []engine.Change{failing(configMap(labels, "both", "x", a, b), "bad"), failing(configMap(labels, "both", "y", a, a), "bad")}
	for i := range 4000 {
		changes = append(changes, configMap(labels, "all", fmt.Sprint(i), a, b))
	}
	page := pageOf(t, output.Options{}, changes)
	page = page[strings.Index(page, "By namespace"):]
	for _, want := range []string{
		`<rect class="solid" x="0" y="0" width="100" height="8"/><rect class="hollow" x="100" y="1" width="0" height="6"/>`,
		`<rect class="solid" x="0" y="0" width="1" height="8"/><rect class="hollow" x="0" y="1" width="1" height="6"/>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no bar %s", want)
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
