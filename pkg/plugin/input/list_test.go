package input

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/memory"
)

func newBounds() *bounds {
	return &bounds{Budget: &memory.Budget{}, aliases: aliasBudget}
}

// lists are documents that look like lists of elements, whether they are or not. Those of
// the first group are read element by element.
var lists = map[bool][]string{
	true: {
		"kind: List\nitems:\n- a: 1\n- b: [1, {c: d}]\n",
		"items:\n- a\n# comment\n\n- b: |\n    - no element\n    # text\n- \"x\n  y\"\nkind: List\n",
		"# comment\nkind: List\nitems:\n  - a: 1\n    b: 2\n  -\n    c: 3\n  - - 1\n    - 2\nmetadata: {}\n",
		"items:\n- &x {a: 1}\n- {<<: {b: 2}, c: !!str 3}\n- \n-\n",
		"kind: List\nitems:\n\n  # first\n  - a\n    b\n   c\n",
	},
	false: {
		"kind: List\nitems:\n- &x {a: 1}\n- *x\n",
		"kind: \"List\nitems:\n- a\n- b\"\n",
		"a: \"x\nitems:\n- a\nb: y\"\n\"items\": []\n",
		"a: [\nitems:\n- a\n]\n",
		"kind: List\nitems:\n- a: \"\n- b: \"\n",
		"kind: List\nitems:\n- a\n- b: [\n- c]\n",
		"kind: List\nitems:\n- a\r- b\n",
		"kind: List\nitems:\n  - a\n  b: c\n",
		"kind: List\nitems:\n- a\n...\nb: c\n",
		"kind: List\nitems:\n- a\nitems:\n- b\n",
		"{\nitems:\n- a\n}\n",
		"kind: List\nitems:\n\t- a\n",
		"kind: List\nitems:\n# \xe2\n- a\n",
		"items:\n\r!0\n-",
		"items:\n# a\u2028!0\n-",
		"kind: List\nitems:\n- a: &a [*a]\n",
	},
}

func TestListsReadByElement(t *testing.T) {
	for _, byElement := range []bool{true, false} {
		for _, text := range lists[byElement] {
			if got := sameAsWhole(t, text); got != byElement {
				t.Errorf("read by element: %t, want %t:\n%s", got, byElement, text)
			}
		}
	}
}

func FuzzListsReadByElement(f *testing.F) {
	for _, group := range lists {
		for _, text := range group {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) { sameAsWhole(t, text) })
}

// sameAsWhole reports whether a document is read element by element, and fails if that gives
// something else than reading it as a whole.
func sameAsWhole(t *testing.T, text string) bool {
	t.Helper()
	p := part{text: []byte(text), line: 10}
	l, isList := cutList(p)
	if !isList {
		return false
	}
	got, err := l.decode(newBounds())
	if err != nil {
		return false
	}
	want, err := decodeNodes(p, 0, newBounds())
	if err != nil || len(want) != 1 {
		t.Fatalf("valid by element only (%v):\n%q", err, text)
	}
	if diff := cmp.Diff(want[0], got, cmp.AllowUnexported(value{}, implied{})); diff != "" {
		t.Fatalf("%q\n(-whole +by element)\n%s", text, diff)
	}
	return true
}

// Documents are refused by what they would become, before that is built.
func TestTooLarge(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:"
	const many = 40_000 // twice what is allowed
	element := "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data: ["
	for name, c := range map[string]struct{ text, want string }{
		"flow sequence":    {object + " [" + strings.Repeat("1,", many) + "]", "stdin:1: "},
		"flow mappings":    {object + " [" + strings.Repeat("{},", many) + "]", "stdin:1: "},
		"nested flow":      {object + " " + strings.Repeat("[", many), "stdin:1: "},
		"block sequence":   {object + "\n" + strings.Repeat("- 1\n", many), "stdin:1: "},
		"dashes of a line": {object + "\n" + strings.Repeat("  "+strings.Repeat("- ", 400)+"\n", many/400), "stdin:1: "},
		"block mapping":    {object + "\n" + strings.Repeat("  a:\n", many), "stdin:1: "},
		"complex keys":     {object + "\n  " + strings.Repeat("? ", many), "stdin:1: "},
		"old line breaks":  {object + "\n" + strings.Repeat("- 1\r", many), "stdin:1: "},
		"unicode breaks":   {object + "\n" + strings.Repeat("-\u2028", many), "stdin:1: "},
		"next line":        {object + "\n" + strings.Repeat("-\u0085", many), "stdin:1: "},
		"second document":  {"a: b\n---\n" + object + " [" + strings.Repeat("1,", many) + "]", "stdin:3: "},
		"not UTF-8":        {"\x00" + strings.Repeat("1,", many), "stdin:1: "},
		"JSON":             {`{"apiVersion": "v1",` + "\n" + `"data": [` + strings.Repeat("1,", many) + "1]}", "stdin:1: "},
		"JSON members":     {`{"apiVersion": "v1",` + "\n" + `"data": [` + strings.Repeat(`{"a":1},`, many) + "1]}", "stdin:1: "},
		"JSON not closed":  {`{"apiVersion": "v1",` + "\n" + `"data": [` + strings.Repeat("1,", 2*many), "stdin:1: "},
		"flow like JSON":   {`{"apiVersion": "v1",` + "\n" + `data: [` + strings.Repeat("1,", many) + "1]}", "stdin:1: "},
		"element":          {"items:\n" + element + "1]\n" + element + strings.Repeat("1,", many) + "]\nkind: List\n", "stdin:6: "},
		"JSON element":     {`{"items": [{},` + "\n" + `{"data": [` + strings.Repeat("1,", many) + `1]}], "kind": "List"}`, "stdin:2: "},
		"around a list":    {"items:\n" + element + "1]\nkind: List\nmetadata: [" + strings.Repeat("1,", many) + "]\n", "stdin:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := (&Reader{Stdin: strings.NewReader(c.text), Budget: memory.Budget{MaxNodes: many / 2}}).ReadAll(t.Context(), Files{Paths: []string{"-"}})
			if err == nil {
				t.Fatalf("%d documents, want an error", len(documents))
			}
			if !strings.Contains(err.Error(), c.want) || !errors.Is(err, memory.ErrTooManyNodes) {
				t.Errorf("%v\nwant an error at %q", err, c.want)
			}
		})
	}
}

// A list may be much larger than an object.
func TestLargeLists(t *testing.T) {
	var yaml, json strings.Builder
	for range 20 {
		yaml.WriteString("- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: [" + strings.Repeat("1,", 10_000) + "]}\n")
		json.WriteString(`,{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": [` + strings.Repeat("1,", 10_000) + `1]}`)
	}
	for name, text := range map[string]string{
		"YAML": "apiVersion: v1\nitems:\n" + yaml.String() + "kind: List\n",
		"JSON": `{"apiVersion": "v1", "items": [` + json.String()[1:] + `], "kind": "List"}`,
	} {
		documents, err := (&Reader{Stdin: strings.NewReader(text), Budget: memory.Budget{MaxNodes: 20_000}}).ReadAll(t.Context(), Files{Paths: []string{"-"}})
		if err != nil || len(documents) != 20 {
			t.Errorf("%s: %d objects, %v; want 20", name, len(documents), err)
		}
	}
}

// All that a Reader reads counts.
func TestBudget(t *testing.T) {
	for name, document := range map[string]string{
		"YAML":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n",
		"aliases": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx: &x [1,2,3,4,5,6,7,8,9]\ny: [*x,*x,*x,*x,*x,*x]\n---\n",
		"JSON":    `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}` + "\n---\n",
	} {
		r := &Reader{Stdin: strings.NewReader(strings.Repeat(document, 1000)), Budget: memory.Budget{Limit: 100_000}}
		documents, err := r.ReadAll(t.Context(), Files{Paths: []string{"-"}})
		if !errors.Is(err, memory.ErrTooLarge) || len(documents) == 0 || len(documents) > 100 || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s: %d objects, %.200v; want some and one %v", name, len(documents), err, memory.ErrTooLarge)
		}
	}
}

// Counting the marks of a text finds at least a half of its nodes.
func FuzzNodes(f *testing.F) {
	for _, group := range lists {
		for _, text := range group {
			f.Add(text)
		}
	}
	for _, text := range []string{"{a,b,c}", "[a: b, ? c : d]", "? ? - - a\n:\n  b", "- -\t- a", "{[]:{}}", "[[],{},[[]]]", "a\u0085b: c\u2028d: e\r- f", "!!set {a, b}", "- !a &b\n- *b\n-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var document yamlv3.Node
		if yamlv3.Unmarshal([]byte(text), &document) != nil {
			return
		}
		if marks, nodes := memory.Nodes([]byte(text)), countNodes(&document)-1; nodes > 2*marks+2 {
			t.Errorf("%d marks and %d nodes in %q", marks, nodes, text)
		}
	})
}

func countNodes(n *yamlv3.Node) int {
	total := 1
	for _, c := range n.Content {
		total += countNodes(c)
	}
	return total
}
