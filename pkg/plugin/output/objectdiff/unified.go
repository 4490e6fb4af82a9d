package objectdiff

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// UnifiedNames stand above the two texts of a diff.
type UnifiedNames struct{ Before, After string }

// unified writes a diff.
type unified struct {
	bytes.Buffer
	before, after *Document
	from, to      []string // their lines
	context       int
}

// unifiedDiff returns the unified diff of two documents with so many lines of context; it is
// empty where they are equal. The head of a hunk names what holds the first line
// that differs, as git names a function:
// "@@ -40,7 +41,7 @@ spec.containers[web].env". Where lines differ in nothing but white
// space, that is marked.
func unifiedDiff(names UnifiedNames, before, after *Document, context int) string {
	u := unified{
		before: before, after: after, context: context,
		from: slices.Collect(strings.Lines(before.Text)), to: slices.Collect(strings.Lines(after.Text)),
	}
	diffs := lcs.DiffLines(u.from, u.to)
	if len(diffs) == 0 {
		return ""
	}
	u.WriteString("--- " + names.Before + "\n+++ " + names.After + "\n")
	for len(diffs) > 0 {
		n := 1
		for n < len(diffs) && diffs[n].Start-diffs[n-1].End <= 2*context {
			n++
		}
		u.hunk(diffs[:n])
		diffs = diffs[n:]
	}
	return u.String()
}

// hunk writes differences that stand close together.
func (u *unified) hunk(diffs []lcs.Diff) {
	first, last := diffs[0], diffs[len(diffs)-1]
	above := min(u.context, first.Start)
	below := min(u.context, len(u.from)-last.End)
	u.WriteString("@@ -" + span(first.Start-above, last.End+below) + " +" + span(first.ReplStart-above, last.ReplEnd+below) + " @@")
	created := len(u.from) == 0 || len(u.to) == 0
	if place := u.place(first); place != "" && !created {
		u.WriteString(" " + place)
	}
	u.WriteString("\n")
	at := first.Start - above
	for _, d := range diffs {
		removed, added, legend := u.from[d.Start:d.End], u.to[d.ReplStart:d.ReplEnd], ""
		if len(removed) > 0 && len(added) > 0 {
			removed, added, legend = markSpaces(removed, added)
		}
		u.lines(' ', u.from[at:d.Start])
		u.lines('-', removed)
		u.lines('+', added)
		u.WriteString(legend)
		at = d.End
	}
	u.lines(' ', u.from[at:last.End+below])
}

// place is what holds the first line that differs.
func (u *unified) place(d lcs.Diff) string {
	if d.Start < d.End {
		return redact.EscapeLine(u.before.Place(d.Start))
	}
	return redact.EscapeLine(u.after.Place(d.ReplStart))
}

// lines writes lines behind a sign.
func (u *unified) lines(sign byte, lines []string) {
	for _, line := range lines {
		u.WriteByte(sign)
		u.WriteString(line)
	}
}

// span names lines, which are counted from 0, as GNU diff does: of none, the line before them is named.
func span(first, end int) string {
	switch end - first {
	case 0:
		return strconv.Itoa(first) + ",0"
	case 1:
		return strconv.Itoa(first + 1)
	}
	return strconv.Itoa(first+1) + "," + strconv.Itoa(end-first)
}
