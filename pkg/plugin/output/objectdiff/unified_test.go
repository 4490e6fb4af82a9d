package objectdiff

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"
)

// Each case says the place of every line of its text, behind a "#".
func TestDocumentPlace(t *testing.T) {
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
		var object map[string]any
		if err := yaml.Unmarshal([]byte(strings.Join(texts, "\n")), &object); err != nil {
			t.Fatal(err)
		}
		var w YAMLWriter
		document, err := w.Object(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Join(texts, "\n")+"\n", document.Text); diff != "" {
			t.Fatalf("%s: the case is not written as the writer does (-case +written):\n%s", file, diff)
		}
		for i := range texts {
			if got := document.Place(i); got != strings.TrimSuffix(want[i], "the object") {
				t.Errorf("%s: line %d, %q: got %q, want %q", file, i+1, texts[i], got, want[i])
			}
		}
	}
}

func TestUnifiedPlace(t *testing.T) {
	pod := func(image string) *Document {
		container := map[string]any{"a": int64(1), "b": int64(2), "c": []any{int64(3)}, "image": image, "name": "web"}
		var w YAMLWriter
		d, err := w.Object(map[string]any{"spec": map[string]any{"containers": []any{container}}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	got := unifiedDiff(UnifiedNames{Before: "old", After: "new"}, pod("x"), pod("z"), 1)
	want := "--- old\n+++ new\n@@ -6,3 +6,3 @@ spec.containers[web]\n     - 3\n-    image: x\n+    image: z\n     name: web\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnifiedNewObject(t *testing.T) {
	got := unifiedDiff(UnifiedNames{Before: "old", After: "new"}, &Document{}, &Document{Text: "a: b\n"}, 3)
	if want := "--- old\n+++ new\n@@ -0,0 +1 @@\n+a: b\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

// What differs in white space alone can be seen, and how far a line is indented is seen
// anyway.
func TestUnifiedWhiteSpace(t *testing.T) {
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
		text := unifiedDiff(UnifiedNames{Before: "old", After: "new"}, &Document{Text: c.before}, &Document{Text: c.after}, 0)
		got := strings.SplitN(text, "\n", 4)[3] // below the names and the head
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.why, diff)
		}
	}
}
