package output

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
)

// documentOf returns an object as YAML.
func documentOf(fields map[string]any) (*Document, error) {
	var w yamlWriter
	err := w.fields(fields, 0, nil)
	return &Document{Text: w.String(), lines: w.lines}, err
}

// What is written reads as what was meant, whatever its strings look like.
func TestYAMLWriterRoundTrip(t *testing.T) {
	texts := []any{
		"", " ", "a", "y", "No", "null", "~", "1", "0x1f", "1e3", "1:30", "500m", "2026-01-01", "nginx:1.27", "a:", "a: b", "a #b", "#", "- a", "-", "?", "*a", "&a", "!x",
		"{a}", "[a]", "'", `"`, "a\nb", "a\nb\n", "a\n\n", "\n", " a\n b\n", "a \nb", "a\tb\n\tc\n", "\ta\n", "a\rb\n", "a\nb\r", "a\\r\nb\r\n", "\n a", "\n\na\n\n\n", "a\n ", " \n", "---\nb\n...\n", "# x\n y: |\n", "- a\nb: c", "tab\there", "é", "\x07", "\x7f", "a\u0085b", "\u0090\n", "\ufeffa", "\ufffe", "=", "<<", "true", "a'b", "%a", "@a", "`a`", "a, b",
		"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
		int64(3), int64(-1), 0.5, 1e21, true, false, nil,
		map[string]any{},
		[]any{},
	}
	object := map[string]any{"list": texts, "nested": []any{[]any{"a", []any{"b", map[string]any{"c": texts}}}, map[string]any{"d": texts, "e": []any{map[string]any{"f": "g"}}}}}
	for _, v := range texts {
		if s, ok := v.(string); ok {
			object["k"+s] = map[string]any{s: s, "in": map[string]any{"deep": s}}
		}
	}
	readsBack(t, object)
}

// readsBack holds that an object's YAML reads as the object.
func readsBack(t *testing.T, object map[string]any) {
	t.Helper()
	got, err := documentOf(object)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var again, meant any
	if err := yaml.Unmarshal([]byte(got.Text), &again); err != nil {
		t.Fatalf("%v\n%s", err, got.Text)
	}
	if err := json.Unmarshal(asJSON, &meant); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(meant, again); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestYAMLWriterLayout(t *testing.T) {
	object := map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"app.kubernetes.io/name": "web", "empty": "", "on": "true"}},
		"spec": map[string]any{
			"containers": []any{map[string]any{
				"name": "a", "image": "nginx:1.27", "args": []any{"-c", "echo a; sleep 1"}, "command": []any{},
				"resources": map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "1Gi"}},
				"env":       []any{map[string]any{"name": "A", "value": "x\ny\n"}},
			}},
			"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}},
		},
	}
	got, err := documentOf(object)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.Text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Lines that end as on Windows are lines too. What ends in the escape itself is not
// taken for them.
func TestYAMLWriterWindowsLineEnds(t *testing.T) {
	for text, want := range map[string]string{
		"a\r\n\r\n b\r\n": "|\n  a\\r\n  \\r\n   b\\r\n",
		"a\r\nb\n":        "|\n  a\\r\n  b\n",
		"a\r\nb":          "|-\n  a\\r\n  b\n",
		"a\r\nb\r":        `"a\r\nb\r"` + "\n",
		"a\rb\r\n":        `"a\rb\r\n"` + "\n",
		"a\\r\nb\n":       `"a\\r\nb\n"` + "\n",
		"a\r\nb\\r":       "|-\n  a\\r\n  b\\r\n",
	} {
		got, err := documentOf(map[string]any{"k": text})
		if err != nil || got.Text != "k: "+want {
			t.Errorf("%q: got %q, %v; want %q", text, got.Text, err, "k: "+want)
		}
	}
}

func FuzzYAMLWriterRoundTrip(f *testing.F) {
	for _, seed := range []string{"a\n b", "\t\n", "a: |\n  b\n", "\n\n x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || strings.Contains(s, "\r\n") {
			t.Skip("no text of JSON, or one whose line ends are shown")
		}
		object := map[string]any{"a": s, "b": []any{s, map[string]any{"c": s, "d": []any{[]any{s}}}}}
		readsBack(t, object)
	})
}

// Whatever text an object holds, all readers of its YAML get it as it is.
func TestYAMLHoldsAnyText(t *testing.T) {
	for _, text := range hostile.Texts() {
		s := strings.ToValidUTF8(text.Text, "\ufffd")
		object := map[string]any{s: s, "list": []any{s, map[string]any{s: map[string]any{"k": s}}}}
		out, err := MarshalYAML(object)
		if err != nil {
			t.Fatal(err)
		}
		for reader, read := range map[string]func([]byte, any) error{"sigs.k8s.io/yaml": unmarshal, "yaml/v3": yamlv3.Unmarshal} {
			var again map[string]any
			if err := read(out, &again); err != nil {
				t.Errorf("%s %.40q, read by %s: %v\n%s", text.Class, s, reader, err, out)
			} else if diff := cmp.Diff(object, again); diff != "" {
				t.Errorf("%s %.40q, read by %s (-want +got):\n%s", text.Class, s, reader, diff)
			}
		}
	}
}

func unmarshal(text []byte, v any) error { return yaml.Unmarshal(text, v) }

// Every line has a holder, whatever strings the object holds.
func TestYAMLWriterPlaces(t *testing.T) {
	for _, s := range []string{"a", "", "a\nb\n", "a\n\n", "\n\na\n", "a\r\nb\r\n", "a\\r\nb\r\n", strings.Repeat("long words ", 30), strings.Repeat("x", 500), "a\rb"} {
		object := map[string]any{s: s, "list": []any{s, []any{s, map[string]any{s: []any{s}}}, map[string]any{}, []any{}}}
		d, err := documentOf(object)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(d.Text, "\n"); n != len(d.lines) {
			t.Errorf("%q: %d lines, and the places of %d:\n%s", s, n, len(d.lines), d.Text)
		}
	}
}

// What could mislead a reader is an escape, and reads as what was meant.
func TestMarshalYAMLEscapes(t *testing.T) {
	for text, want := range map[string]string{
		"a":                     "k: a\n",
		"a\u202eb":              `k: "a\u202eb"` + "\n",
		"\u2028":                `k: "\u2028"` + "\n",
		"\U000e0001 \u200b":     `k: "\U000e0001 \u200b"` + "\n",
		"\x01202e\x01\u202e":    `k: "\x01202e\x01\u202e"` + "\n",
		`\x01202e\x01` + "\x01": `k: "\\x01202e\\x01\x01"` + "\n",
	} {
		got, err := MarshalYAML(map[string]any{"k": text})
		if err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v; want %s", text, got, err, want)
		}
		var again map[string]string
		if err := yaml.Unmarshal(got, &again); err != nil || again["k"] != text {
			t.Errorf("%q reads as %q, %v", text, again["k"], err)
		}
	}
}

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
		document, err := documentOf(object)
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
		d, err := documentOf(map[string]any{"spec": map[string]any{"containers": []any{container}}})
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
