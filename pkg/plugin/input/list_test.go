package input

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newAliases() *int {
	aliases := aliasBudget
	return &aliases
}

// lists are documents that look like lists of elements, whether they are or not. Those of
// the first group are read element by element.
var lists = map[bool][]string{
	true: {
		"kind: List\nitems:\n- a: 1\n- b: [1, {c: d}]\n",
		"items:\n# - comment\n- a: 1\n# comment\n\n- b: |\n    - no element\n    # text\n- c: \"x\n  y\"\nkind: List\n",
		"# comment\nkind: List\nitems:\n  - a: 1\n    b: 2\n  -\n    c: 3\nmetadata: {}\n",
		"items:\n- &x {a: 1}\n- {<<: {b: 2}, c: !!str 3}\n",
	},
	false: {
		"kind: List\nitems:\n\n  # first\n  - a\n    b\n   c\n",
		"kind: List\nitems:\n- |\n# x\n",
		"kind: List\nitems:\n- a: 1\n-\n",
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
	got, ok := decodeList(p, newAliases())
	if !ok {
		return false
	}
	want, err := decodeNodes(p, 0, newAliases())
	if err != nil || len(want) != 1 {
		t.Fatalf("valid by element only (%v):\n%q", err, text)
	}
	if diff := cmp.Diff(want[0], got, cmp.AllowUnexported(value{})); diff != "" {
		t.Fatalf("%q\n(-whole +by element)\n%s", text, diff)
	}
	return true
}
