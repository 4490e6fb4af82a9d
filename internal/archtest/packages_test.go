package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// trees are the packages below which every package needs a row of its own, or of
// one that it is below.
var trees = []string{"pkg/plugin", "pkg/engine"}

// A package that the page does not name is hard to find; a name without a
// package misleads the reader.
func TestEveryPackageHasARow(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(string(page))
	for i, row := range rows {
		if _, err := os.Stat(filepath.Join("../..", filepath.FromSlash(row))); err != nil {
			t.Errorf("docs/architecture.md has a row for %s, which is not there", row)
		}
		if slices.Contains(rows[:i], row) {
			t.Errorf("docs/architecture.md has two rows for %s", row)
		}
	}
	for _, p := range list(t, "../..") {
		if name := strings.TrimPrefix(p.ImportPath, module+"/"); !covered(name, rows) {
			t.Errorf("docs/architecture.md has no row for %s", name)
		}
	}
}

func TestRowsOfThePage(t *testing.T) {
	const page = "| package | one sentence |\n|---|---|\n" +
		"| `pkg/plugin` | Commands; see `pkg/other`. |\n| `pkg/plugin/a/b`, `c`, `krew/d` | Three. |\n\nNot a row: `pkg/e`.\n"
	rows := rowsOf(page)
	if want := []string{"pkg/plugin", "pkg/plugin/a/b", "pkg/plugin/a/c", "krew/d"}; !slices.Equal(rows, want) {
		t.Fatalf("got %q, want %q", rows, want)
	}
	for name, want := range map[string]bool{
		"pkg/plugin": true, "pkg/plugin/a/b": true, "pkg/plugin/a/c/deep/er": true, "krew/d/e": true,
		"pkg/plugin/a": false, "pkg/plugin/new": false, "pkg/plugin/a/bc": false, "pkg/other": false,
		"pkg/plugin/internal/x": true, // for the tests of its neighbours
	} {
		if got := covered(name, rows); got != want {
			t.Errorf("%s is covered: %t, want %t", name, got, want)
		}
	}
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// rowsOf are the packages in the first cells of a page's tables. A name without a
// slash behind another stands beside it.
func rowsOf(page string) []string {
	var rows []string
	for line := range strings.Lines(page) {
		cell, isRow := strings.CutPrefix(line, "| `")
		if !isRow {
			continue
		}
		cell, _, _ = strings.Cut(cell, " |")
		beside := ""
		for _, span := range codeSpan.FindAllStringSubmatch("`"+cell, -1) {
			name := span[1]
			if !strings.Contains(name, "/") {
				name = path.Join(beside, name)
			}
			beside = path.Dir(name)
			rows = append(rows, name)
		}
	}
	return rows
}

// covered reports whether a package has a row, or is below one that has.
func covered(name string, rows []string) bool {
	if slices.Contains(rows, name) || strings.Contains(name, "/internal/") {
		return true
	}
	return slices.ContainsFunc(rows, func(row string) bool {
		return !slices.Contains(trees, row) && strings.HasPrefix(name, row+"/")
	})
}
