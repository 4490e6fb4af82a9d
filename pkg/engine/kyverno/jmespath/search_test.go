package jmespath_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

var now = time.Date(2024, 2, 29, 13, 14, 15, 0, time.FixedZone("", 2*60*60))

// decode reads JSON as unstructured objects are read: whole numbers are int64.
func decode(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func search(t testing.TB, expr string, data any) (any, error) {
	t.Helper()
	compiled, err := jmespath.Compile(expr)
	if err != nil {
		t.Fatalf("Compile(%s): %v", expr, err)
	}
	return compiled.Search(jmespath.New(now, 1, nil), data)
}

// cases are the sections of testdata: lines of an expression and what it gives for some data.
func cases(t testing.TB) (data string, sections []txtar.File) {
	t.Helper()
	for _, name := range []string{"testdata/search.txtar", "testdata/functions.txtar"} {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sections = append(sections, archive.Files...)
	}
	return string(sections[0].Data), sections[1:]
}

func TestSearch(t *testing.T) {
	data, sections := cases(t)
	for _, section := range sections {
		for line := range strings.Lines(string(section.Data)) {
			expr, want, _ := strings.Cut(strings.TrimSpace(line), " => ")
			t.Run(section.Name+"/"+expr[:min(len(expr), 80)], func(t *testing.T) { testSearch(t, expr, data, want) })
		}
	}
}

func testSearch(t *testing.T, expr, data, want string) {
	got, err := search(t, expr, decode(t, data))
	reason, fails := strings.CutPrefix(want, "error: ")
	var failed *jmespath.CallError
	var notFound *jmespath.NotFoundError
	switch {
	case want == "missing":
		if !errors.As(err, &notFound) {
			t.Errorf("got %v, %v, want a missing key", got, err)
		}
	case fails:
		if !errors.As(err, &failed) || !strings.Contains(failed.Err.Error(), reason) {
			t.Errorf("got %v, %v, want a CallError: %s", got, err, reason)
		}
	case err != nil:
		t.Fatal(err)
	default:
		if diff := cmp.Diff(decode(t, want), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestRandomBySeed(t *testing.T) {
	compiled, err := jmespath.Compile("[random('[a-z]{20}'), random('[a-z]{20}')]")
	if err != nil {
		t.Fatal(err)
	}
	draw := func(in *jmespath.Interpreter) []any {
		drawn, err := compiled.Search(in, map[string]any{})
		if err != nil {
			t.Fatal(err)
		}
		return drawn.([]any)
	}
	in := jmespath.New(now, 1, nil)
	first, next := draw(in), draw(in)
	if !regexp.MustCompile("^[a-z]{20}$").MatchString(first[0].(string)) {
		t.Errorf("%v does not match the pattern", first[0])
	}
	if first[0] == first[1] || first[0] == next[0] {
		t.Errorf("texts repeat: %v, then %v", first, next)
	}
	if diff := cmp.Diff(first, draw(jmespath.New(now, 1, nil))); diff != "" {
		t.Errorf("one seed gives two series:\n%s", diff)
	}
	if other := draw(jmespath.New(now, 2, nil)); first[0] == other[0] {
		t.Errorf("two seeds give %v", first)
	}
}

func TestSearchKeepsItsData(t *testing.T) {
	text, _ := cases(t)
	data, before := decode(t, text), decode(t, text)
	for _, expr := range []string{"sort_by(l, &n)", "sort_by(l, &v)", "reverse(l)", "sort(nested[0])", "merge(a, labels)", "l[] | sort_by(@, &v)"} {
		if _, err := search(t, expr, data); err != nil {
			t.Errorf("%s: %v", expr, err)
		}
	}
	if diff := cmp.Diff(before, data); diff != "" {
		t.Errorf("the data was modified:\n%s", diff)
	}
	got, _ := search(t, "labels", data)
	got.(map[string]any)["mark"] = true
	if _, ok := data.(map[string]any)["labels"].(map[string]any)["mark"]; !ok {
		t.Error("the result is a copy")
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, expr := range []string{
		"", " ", "a.", "a[", "a[0", "a[1", "[1", "[:", "{", "{a", "{a:", "{a: b", "f(", "length(", "(a", "a b", "'open", "`{`", "`1", "\"open",
		"a ~ b", "&a", "[&a]", "unknown_function(a)", "a.b(c)(d)", "|", "a ||", "!", "*.", "\"f\"(a)", "a[?", "a[?b", "[0][", "a = b", "a[99999999999999999999]",
		strings.Repeat("!", 100_000) + "a",
		strings.Repeat("[", 60_000),
	} {
		compiled, err := jmespath.Compile(expr)
		var syntax *jmespath.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Compile(%.40q) = %v, %v; want a SyntaxError", expr, compiled, err)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("the message has %d bytes", len(err.Error()))
		}
	}
}

// Small expressions that ask for absurdly much must end soon, with the limit.
func TestSearchLimits(t *testing.T) {
	doubled := strings.Repeat("[@,@]|", 60) + "@"
	for name, expr := range map[string]string{
		"shared lists as a result":  doubled,
		"shared lists as a text":    "to_string(" + doubled + ")",
		"shared lists compared":     "(" + doubled + ") == (" + doubled + ")",
		"shared lists searched":     "contains([" + doubled + "], " + doubled + ")",
		"flattened lists":           "[a]|" + strings.Repeat("[@[],@[]][]|", 60) + "@",
		"joined texts":              "to_string('aaaaaaaaaa')|" + strings.Repeat("join('x',[@,@,@,@])|", 30) + "@",
		"replaced texts":            "to_string('aaaaaaaaaa')|" + strings.Repeat("replace_all(@,'a',@)|", 8) + "@",
		"replaced by expressions":   "to_string('aaaaaaaaaa')|" + strings.Repeat("regex_replace_all('a',@,@)|", 8) + "@",
		"pieces of texts":           "split(join('', map(&'aaaaaaaaaa', " + strings.Repeat("[@,@,@,@][]|", 10) + "@)), '')",
		"decoded texts":             "parse_json(join('', map(&'[[[[[[[[[[', " + strings.Repeat("[@,@,@,@][]|", 10) + "@)))",
		"counted repeats":           "regex_match('" + strings.Repeat("x{0,1000}", 100) + "', 'x')",
		"groups of an expression":   "regex_replace_all('" + strings.Repeat("()", 4000) + "', 'x', '')",
		"long texts in long lists":  "map(&reverse(@), to_string('aaaaaaaaaa')|" + strings.Repeat("join('',[@,@])|", 21) + "[@]|" + strings.Repeat("[@,@][]|", 18) + "@)",
		"long random values":        "random('((a{1000}){1000}){1000}')",
		"encoded texts":             "to_string('aaaaaaaaaa')|" + strings.Repeat("base64_encode(@)|", 90) + "@",
		"nested loops over objects": "map(&to_string(@)," + strings.Repeat("[@,@,@,@][]|", 40) + "@)",
	} {
		t.Run(name, func(t *testing.T) {
			compiled, err := jmespath.Compile(expr)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // in place of the time of a rule
			defer cancel()
			ctx, done := limit.Rule(ctx, compiled)
			defer done()
			result, err := compiled.Search(jmespath.New(now, 1, limit.ClockOf(ctx)), decode(t, `{"a": [1, 2, 3]}`))
			if err == nil {
				t.Errorf("got %.60v, want a limit", result)
			}
		})
	}
}

func TestExpressionFacts(t *testing.T) {
	for _, c := range []struct {
		expr    string
		uses    []string
		not     []string
		because string
	}{
		{expr: "request.object.metadata.name", uses: []string{"request"}, not: []string{"object", "metadata"}},
		{expr: "a.b || element.x", uses: []string{"a", "element"}, not: []string{"b", "x"}},
		{expr: "l[?x == target.y].z", uses: []string{"l"}, not: []string{"target", "x", "z"}},
		{expr: "length(images.containers)", uses: []string{"images"}},
		{expr: "[a, {k: b}]", uses: []string{"a", "b"}, not: []string{"k"}},
		{expr: "a | b", uses: []string{"a"}, not: []string{"b"}},
		{expr: "@.cm.data", uses: []string{"cm"}, not: []string{"data"}},
		{expr: "lookup(@, 'cm')", uses: []string{"cm"}, not: []string{"c"}},
		{expr: "map(&x, list)", uses: []string{"list"}, not: []string{"x"}},
		{expr: "\"my-entry\".x", uses: []string{"my-entry"}},
		{expr: "time_now()", because: "reads the clock: time_now()"},
		{expr: "join('-', [random('x'), time_now_utc(), random('y')])", because: "random value: random(); reads the clock: time_now_utc()"},
	} {
		compiled, err := jmespath.Compile(c.expr)
		if err != nil {
			t.Fatal(err)
		}
		if compiled.String() != c.expr {
			t.Errorf("String() = %s, want %s", compiled, c.expr)
		}
		for _, name := range c.uses {
			if !compiled.Uses(name) {
				t.Errorf("%s does not use %s", c.expr, name)
			}
		}
		for _, name := range c.not {
			if compiled.Uses(name) {
				t.Errorf("%s uses %s", c.expr, name)
			}
		}
		if got := compiled.NotIdempotent(); got != c.because {
			t.Errorf("%s: NotIdempotent() = %q, want %q", c.expr, got, c.because)
		}
	}
}

func FuzzSearch(f *testing.F) {
	object, _ := cases(f)
	for _, seed := range []string{
		"a.b", "l[?v > `1`].n", "sort_by(l, &n)[0]", "{x: a, y: l[*].v}", "labels.* | [0]", "join('-', keys(labels))", "add('1Mi', '2Ki')",
		"regex_replace_all('a(b)', 'ab', '$1')", "random('[a-z]{3}')", "items(labels, 'k', 'v')", "to_string(@)", "l[::-1]", "a.missing || 'x'",
		"parse_yaml('a: [1, 2]')", "semver_compare('1.2.3', '>1')", "time_parse('Mon', 'x')", "x509_decode('-----BEGIN')", "divide('1h', '5m')",
	} {
		f.Add(seed, object)
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		compiled, err := jmespath.Compile(expr)
		if err != nil {
			return
		}
		var data any
		if utiljson.Unmarshal([]byte(text), &data) != nil {
			data = decode(t, object)
		}
		first, firstErr := compiled.Search(jmespath.New(now, 7, nil), data)
		second, secondErr := compiled.Search(jmespath.New(now, 7, nil), data)
		if (firstErr == nil) != (secondErr == nil) || !cmp.Equal(first, second) {
			t.Errorf("%q: first %v, %v; then %v, %v", expr, first, firstErr, second, secondErr)
		}
		if firstErr != nil {
			return
		}
		if _, err := json.Marshal(first); err != nil {
			t.Errorf("%q: the result is no JSON: %v", expr, err)
		}
	})
}
