package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fenced      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// pages returns the documents by their path, without what stands in blocks.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, path := range append(paths, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md") {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = fenced.ReplaceAllString(string(page), "")
	}
	return out
}

// A link of a document leads to a file, and to a heading in it if it names one.
func TestLinksOfDocuments(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for path, page := range all {
		for _, found := range link.FindAllStringSubmatch(page, -1) {
			if strings.HasPrefix(found[1], "http") {
				continue
			}
			name, anchor, _ := strings.Cut(found[1], "#")
			target := filepath.Join(filepath.Dir(path), name)
			if name == "" {
				target = path
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: %v", path, found[1], err)
				continue
			}
			if other, is := all[filepath.ToSlash(target)]; is && anchor != "" && !anchors(other)[anchor] {
				t.Errorf("%s: %s: there is no such heading", path, found[1])
			}
		}
	}
}

// anchors returns the names that GitHub gives the headings of a page.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		out[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-")] = true
	}
	return out
}

// The messages of docs/troubleshooting.md are what the program prints.
func TestMessagesOfTroubleshooting(t *testing.T) {
	t.Parallel()
	// What kubectl, the API server and the libraries of the engines say.
	var source strings.Builder
	source.WriteString(`unknown command "mutate" for "kubectl" X is forbidden: User "Y" cannot list resource
The connection to the server X was refused Unknown key "X" in path no such key: X field is immutable pod updates may not change fields
`)
	// Messages that are made of parts stand whole in what tests have recorded.
	for _, tree := range []string{"../../pkg", "../../test/e2e/testdata"} {
		err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
			if ext := filepath.Ext(path); err != nil || ext != ".go" && ext != ".txtar" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			source.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	said := strings.ReplaceAll(source.String(), `\"`, `"`)
	placeholder := regexp.MustCompile(`"?\b[NXY]\b"?| \.\.\. `)
	messages := 0
	for row := range strings.Lines(pages(t)["../../docs/troubleshooting.md"]) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			messages++
			for _, piece := range placeholder.Split(quoted[1], -1) {
				if !strings.Contains(said, strings.Trim(piece, ` :,;`)) {
					t.Errorf("nothing says %q, of %q", piece, quoted[1])
				}
			}
		}
	}
	if messages < 20 {
		t.Errorf("there are %d messages, want 20 or more", messages)
	}
}

// The plot of docs/performance.md shows the table beside it.
func TestPlotOfPerformance(t *testing.T) {
	t.Parallel()
	plot, err := os.ReadFile("../../docs/performance.svg")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, row := range regexp.MustCompile(`(?m)^\| .* \| ([\d.]+) \| [\d.]+ \| \d+ \|$`).FindAllStringSubmatch(pages(t)["../../docs/performance.md"], -1) {
		want = append(want, row[1])
	}
	for _, value := range regexp.MustCompile(`class="value"[^>]*>([^<]+)<`).FindAllSubmatch(plot, -1) {
		got = append(got, string(value[1]))
	}
	if len(want) == 0 || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the plot shows %v, the table %v", got, want)
	}
}
