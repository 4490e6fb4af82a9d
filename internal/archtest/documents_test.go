package archtest

import (
	"flag"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
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

// The plot of docs/performance.md is drawn from the table beside it.
func TestPlotOfPerformance(t *testing.T) {
	t.Parallel()
	bars := bars(pages(t)["../../docs/performance.md"])
	if len(bars) == 0 {
		t.Fatal("the page has no table")
	}
	var want strings.Builder
	if err := plot.Execute(&want, bars); err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/performance.svg"
	if *update {
		if err := os.WriteFile(path, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s is not what the table says; -update draws it (-table +plot):\n%s", path, diff)
	}
}

var update = flag.Bool("update", false, "draw docs/performance.svg from the table of docs/performance.md")

// bar is a row of the table: what was measured, and its CPU in multiples of the bare work.
type bar struct {
	Work  string
	Value float64
}

// bars returns the rows of the table. A row that begins with "the same" continues the one before.
func bars(page string) []bar {
	var out []bar
	first := ""
	for _, row := range regexp.MustCompile(`(?m)^\| (.*) \| ([\d.]+) \| \d+ \|$`).FindAllStringSubmatch(page, -1) {
		work := strings.ReplaceAll(strings.ReplaceAll(row[1], "`", ""), " x ", " × ")
		if rest, same := strings.CutPrefix(work, "the same"); same {
			work = first + rest
		} else {
			first, _, _ = strings.Cut(work, ", ")
		}
		value, _ := strconv.ParseFloat(row[2], 64) // digits
		out = append(out, bar{work, value})
	}
	return out
}

// A bar is 24 pixels below the one before, and 120 pixels long for the bare work.
var plot = template.Must(template.New("").Funcs(template.FuncMap{
	"y":    func(row, below int) int { return 34 + 24*row + below },
	"x":    func(value float64) int { return 430 + int(math.Round(120*value)) },
	"wide": func(value float64) int { return int(math.Round(120 * value)) },
	"add":  func(x, y int) int { return x + y },
}).Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {{y (len .) 28}}" width="860" height="{{y (len .) 28}}" role="img" aria-labelledby="title">
<title id="title">CPU of a run in multiples of the bare work</title>
<style>text{font:13px system-ui,sans-serif;fill:#1f2328}rect{fill:#0969da}.value{fill:#fff}.axis{stroke:#8c959f}.least{stroke:#cf222e;stroke-dasharray:4 3}@media(prefers-color-scheme:dark){text{fill:#e6edf3}rect{fill:#1f6feb}.value{fill:#fff}.axis{stroke:#6e7681}.least{stroke:#f85149}}</style>
<text x="{{x 1}}" y="16" text-anchor="middle">bare work</text>
{{range $i, $b := . -}}
<text x="420" y="{{y $i 13}}" text-anchor="end">{{$b.Work}}</text><rect x="{{x 0}}" y="{{y $i 1}}" width="{{wide $b.Value}}" height="16"/><text class="value" x="{{add (x $b.Value) -6}}" y="{{y $i 13}}" text-anchor="end">{{printf "%.2f" $b.Value}}</text>
{{end -}}
<line class="axis" x1="{{x 0}}" y1="28" x2="{{x 0}}" y2="{{y (len .) 0}}"/><line class="least" x1="{{x 1}}" y1="22" x2="{{x 1}}" y2="{{y (len .) 0}}"/>
<text x="{{x 0}}" y="{{y (len .) 18}}" text-anchor="middle">0</text><text x="{{x 1}}" y="{{y (len .) 18}}" text-anchor="middle">1</text><text x="{{x 2}}" y="{{y (len .) 18}}" text-anchor="middle">2</text><text x="{{x 3}}" y="{{y (len .) 18}}" text-anchor="middle">3</text>
</svg>
`))
