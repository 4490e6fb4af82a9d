package report

import (
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

var texts = []string{
	"", " ", "a", "yes", "No", "null", "~", "1", "1e3", "a: b", "a #b", "- a", "'", `"`, "''", "a\nb", " a\nb", "a\n", "\n", "a\n\nb", "a\n b\n c", "\ta", "a\tb", "a\r\nb",
	"\x00", "\x1b[2J", "\u202e", "\u2028", "\ufeff", "\ufffe", "\U0001f600", "|", ">", "%a", "@a", "`a`", "{a}", "[a]", "*a", "&a", "!a", "? a", "---", "...", "# a\n---\n", "a\\nb", "é", "\u0085",
}

// What is written reads as what was meant.
func FuzzField(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("no text of JSON")
		}
		d := yamlField(0, "first", text) + "in:\n" + yamlField(2, "second", text) + yamlField(2, "last", "end")
		var got struct {
			First string
			In    struct{ Second, Last string }
		}
		if err := yaml.UnmarshalStrict([]byte(d), &got); err != nil {
			t.Fatalf("%q: %v\n%s", text, err, d)
		}
		if got.First != text || got.In.Second != text || got.In.Last != "end" {
			t.Errorf("%q: got %+v\n%s", text, got, d)
		}
	})
}
