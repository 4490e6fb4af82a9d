package objectdiff_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
)

// Each case says the place of every line of its text, behind a "#".
func TestPlace(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var texts, want []string
		for line := range strings.Lines(string(archive.Files[0].Data)) {
			text, place, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "# ")
			if !ok {
				t.Fatalf("%s: no place in %q", file, line)
			}
			texts = append(texts, strings.TrimRight(text, " "))
			want = append(want, strings.TrimSpace(place))
		}
		for i := range texts {
			if got := objectdiff.LinePlace(texts, i); got != strings.TrimSuffix(want[i], "the object") {
				t.Errorf("%s: line %d, %q: got %q, want %q", file, i+1, texts[i], got, want[i])
			}
		}
	}
}

func TestAHunkSaysWhereItsFirstDifferenceIs(t *testing.T) {
	before := "spec:\n  containers:\n  - a: 1\n    b: 2\n    c:\n    - 3\n    image: x\n    name: web\n"
	after := strings.Replace(before, "image: x", "image: y", 1)
	got, err := objectdiff.Unified(objectdiff.UnifiedNames{Before: "old", After: "new"}, before, after, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := "--- old\n+++ new\n@@ -6,3 +6,3 @@ spec.containers[web]\n     - 3\n-    image: x\n+    image: y\n     name: web\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsNotThereYetHasNoPlaces(t *testing.T) {
	got, err := objectdiff.Unified(objectdiff.UnifiedNames{Before: "old", After: "new"}, "", "a: b\n", 3)
	if want := "--- old\n+++ new\n@@ -0,0 +1 @@\n+a: b\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestEqualTextsHaveNoDiff(t *testing.T) {
	if got, err := objectdiff.Unified(objectdiff.UnifiedNames{}, "a: b\n", "a: b\n", 3); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// No text makes Place panic or hang; what is read is under somebody else's control.
func FuzzPlace(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(_ *testing.T, text string) {
		lines := strings.Split(text, "\n")
		for i := range min(len(lines), 50) {
			objectdiff.LinePlace(lines, i)
		}
	})
}

// What differs in white space alone can be seen, and how far a line is indented is seen
// anyway.
func TestWhiteSpaceThatDiffersIsMarked(t *testing.T) {
	const legend = "\\ only white space differs: · is a space, → a tab\n"
	for _, c := range []struct{ why, before, after, want string }{
		{"a space at the end", "k: |\n  a \n  b\n", "k: |\n  a\n  b\n", "-  a·\n+  a\n" + legend},
		{"a tab for spaces", "  a  b c\n", "  a\tb c\n", "-  a··b c\n+  a→b c\n" + legend},
		{"a space that does not break lines", "a b\n", "a\u00a0b\n", "-a·b\n+a\\u00a0b\n" + legend},
		{"a line of spaces", "a\n  \nb\n", "a\n\nb\n", "-··\n+\n" + legend},
		{"an indent of tabs", "\ta\n", "  a\n", "-→a\n+··a\n" + legend},
		{"one line of several", "a \nb\nc\n", "x\na\nb y\nc\n", "-a·\n-b\n+x\n+a\n+b y\n" + legend},
		{"an indent", "a:\n  b\n", "a:\n    b\n", "-  b\n+    b\n"},
		{"words that differ", "a b \n", "ab \n", "-a b \n+ab \n"},
		{"a line that is new", "a\n", "a\nb \n", "+b \n"},
	} {
		text, err := objectdiff.Unified(objectdiff.UnifiedNames{Before: "old", After: "new"}, c.before, c.after, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.SplitN(text, "\n", 4)[3] // below the names and the head
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.why, diff)
		}
	}
}
