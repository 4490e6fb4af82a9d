package plugin_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var openListFile = filepath.Join("testdata", "conformance-open.txt")

// openList is the list of cases that do not agree yet: lines "PATTERN  # reason",
// where a pattern is the id of a case, or "dialect:NAME" for all of a dialect
// that is not there yet.
type openList struct {
	lines   []string // as they stand in the file
	reasons map[string]string
}

func readOpenList(t *testing.T) *openList {
	t.Helper()
	content, err := os.ReadFile(openListFile)
	if err != nil {
		t.Fatal(err)
	}
	list := &openList{reasons: map[string]string{}}
	for _, line := range strings.Split(strings.TrimRight(string(content), "\n"), "\n") {
		list.lines = append(list.lines, line)
		pattern, reason := splitOpenLine(line)
		if pattern == "" {
			continue
		}
		if reason == "" {
			t.Errorf("%s: %s has no reason", openListFile, pattern)
		}
		if _, twice := list.reasons[pattern]; twice {
			t.Errorf("%s: %s stands there twice", openListFile, pattern)
		}
		list.reasons[pattern] = reason
	}
	return list
}

func splitOpenLine(line string) (pattern, reason string) {
	pattern, reason, _ = strings.Cut(line, "#")
	return strings.TrimSpace(pattern), strings.TrimSpace(reason)
}

// find returns why a case is open, and whether it is listed by its own name.
func (l *openList) find(c replayCase) (reason string, byName, listed bool) {
	if reason, listed = l.reasons[c.ID]; listed {
		return reason, true, true
	}
	for _, dialect := range c.Dialects {
		if reason, listed = l.reasons["dialect:"+dialect]; listed {
			return reason, false, true
		}
	}
	return "", false, false
}

// unused lists the patterns that stand for no case.
func (l *openList) unused(cases []replayCase) []string {
	used := map[string]bool{}
	for _, c := range cases {
		used[c.ID] = true
		for _, dialect := range c.Dialects {
			used["dialect:"+dialect] = true
		}
	}
	var unused []string
	for pattern := range l.reasons {
		if !used[pattern] {
			unused = append(unused, pattern)
		}
	}
	slices.Sort(unused)
	return unused
}

// rewriteOpenList takes off what agrees and adds what does not; the reasons are
// written by hand.
func (r *results) rewriteOpenList(t *testing.T) {
	t.Helper()
	var lines []string
	for _, line := range r.open.lines {
		pattern, _ := splitOpenLine(line)
		if !r.agreed[pattern] {
			lines = append(lines, line)
		}
	}
	var added []string
	for id, agreed := range r.agreed {
		if _, _, listed := r.open.find(r.cases[id]); !agreed && !listed {
			added = append(added, id+"  # not explained yet")
		}
	}
	slices.Sort(added)
	content := strings.Join(append(lines, added...), "\n") + "\n"
	if err := os.WriteFile(openListFile, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
