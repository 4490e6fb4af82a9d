package pattern_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

func TestParseKey(t *testing.T) {
	for key, want := range map[string]string{
		"name":       " name",
		"(name)":     "() name",
		"<(name)":    "<() name",
		"+(a.b/c-d)": "+() a.b/c-d",
		"X(name)":    "X() name",
		"^(name)":    "^() name",
		" (name) ":   "() name",
		"()":         " ()",
		"+()":        " +()",
		"Y(name)":    " Y(name)",
		"(name":      " (name",
		"((name))":   "() (name)",
		"pre(x)":     " pre(x)",
		"":           " ",
		"(a*)":       "() a*",
	} {
		anchor, plain := pattern.ParseKey(key)
		if got := anchor.String() + " " + plain; got != want {
			t.Errorf("ParseKey(%q) is %q, want %q", key, got, want)
		}
	}
}

// The language of scalar patterns. Patterns and values are YAML.
func TestMatchScalars(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		want           bool
	}{
		// Match types.
		{"true", "true", true},
		{"true", `"true"`, false},
		{"3", "3", true},
		{"3", "3.0", true},
		{"3", "3.5", false},
		{"3", `"3"`, true},
		{"3", "true", false},
		{"3.5", `"3.5"`, true},
		{"3.0", "3", true},
		{`"true"`, "true", true},
		// Match null.
		{"null", "null", true},
		{"null", "0", true},
		{"null", `""`, true},
		{"null", "false", true},
		{"null", "1", false},
		{"null", "{}", false},
		{`"*"`, "null", false},
		{`"!x"`, "null", false},
		{`"<5"`, "null", true},
		{`">5"`, "null", false},
		{`"!5"`, "null", true},
		{`"0"`, "null", true},
		// Match operators.
		{`">2"`, "2", false},
		{`">= 2"`, "2", true},
		{`"<2"`, "1", true},
		{`"<=2"`, "3", false},
		{`"!nginx*"`, "nginx:1", false},
		{`">a"`, "b", false},
		{`"!"`, `"!"`, true},
		{`"!true"`, "false", true},
		// Has patterns that join others by | and &.
		{`"a | b"`, "b", true},
		{`">1 & <5"`, "5", false},
		{`"1 | >1 & <5"`, "3", true},
		{`"a*&*b"`, "ab", true},
		{`"a | b"`, "a | b", true},
		{`"|"`, `""`, true},
		// Match ranges.
		{`"1-5"`, "5", true},
		{`"1!-5"`, "5", false},
		{`"1Gi-2Gi"`, "1500Mi", true},
		{`"-5--1"`, "-3", true},
		{`"1.5-2.5"`, "2", true},
		{`"10s-5m"`, "1m", true},
		{`"1 - 5"`, "3", false},
		{`"a-b"`, "a-b", true},
		{`"1-5-7"`, "3", false},
		// Has durations and quantities.
		{`"60s"`, "1m", true},
		{`">1m"`, "61s", true},
		{`"!60s"`, "1m", true},
		{`"1Gi"`, "1024Mi", true},
		{`"<1Gi"`, "1023Mi", true},
		{`">=0.5"`, "500m", true},
		{`"1e3"`, "1000", true},
		{`"1e999999999"`, "2e999999999", false},
		// Has wildcards against values that are not strings.
		{`"1*"`, "10", true},
		{`"tru?"`, "true", true},
		{`"1.5*"`, "1.5", true},
		// Has lists, of which each element is asked, and maps.
		{`"a*"`, "[a, ab]", true},
		{`"a*"`, "[a, b]", false},
		{`"a*"`, "[]", true},
	} {
		if got := pattern.Match(nil, value(t, c.pattern), value(t, c.value), nil); got != c.want {
			t.Errorf("%s matches %s: %t", c.pattern, c.value, got)
		}
	}
}

// TestMatchStructures reads testdata/structures.txtar: a pattern, a value that
// it matches and one that it does not; several are documents of one file.
func TestMatchStructures(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/structures.txtar")
	if err != nil {
		t.Fatal(err)
	}
	patterns := map[string]any{}
	for _, f := range archive.Files {
		name, part, _ := strings.Cut(f.Name, "/")
		if part == "pattern" {
			patterns[name] = value(t, string(f.Data))
			continue
		}
		for i, text := range strings.Split(string(f.Data), "---\n") {
			t.Run(fmt.Sprint(f.Name, i), func(t *testing.T) {
				if got, want := pattern.Match(nil, patterns[name], value(t, text), nil), part == "matches"; got != want {
					t.Errorf("match is %t for\n%s", got, text)
				}
			})
		}
	}
}

// difference is a case of testdata/differences.txtar: a pattern, a value that does
// not match it, and where and why not.
type difference struct {
	Pattern, Value any
	Want           string
}

func TestDifference(t *testing.T) {
	conformance.EachCase(t, "testdata/differences.txtar", func(t *testing.T, c *difference) {
		var why pattern.Difference
		if pattern.Match(nil, c.Pattern, c.Value, &why) {
			t.Fatal("they match")
		}
		if got := why.Below("spec").Text(engine.BriefValue); got != c.Want {
			t.Errorf("\n got %s\nwant %s", got, c.Want)
		}
	})
}

func value(t testing.TB, text string) any {
	t.Helper()
	v, err := decode(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func decode(text string) (any, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	var v any
	err = utiljson.Unmarshal(raw, &v)
	return v, err
}
