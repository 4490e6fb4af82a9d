package objectdiff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// UnifiedNames stand above the two texts of a diff.
type UnifiedNames struct{ Before, After string }

// Unified returns the unified diff of two documents with so many lines of context; it is
// empty where they are equal. The head of a hunk names what holds the first line
// that differs, as git names a function:
// "@@ -40,7 +41,7 @@ spec.containers[web].env". Where lines differ in nothing but white
// space, that is marked.
func Unified(names UnifiedNames, before, after *Document, context int) string {
	u := unified{before: before, after: after, from: splitLines(before.Text), to: splitLines(after.Text), context: context}
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

func splitLines(text string) []string {
	return slices.AppendSeq(make([]string, 0, strings.Count(text, "\n")+1), strings.Lines(text))
}

// unified is the text of a diff as far as it is written.
type unified struct {
	strings.Builder
	before, after *Document
	from, to      []string // their lines
	context       int
	lines         []string // of the hunk
}

// hunk writes differences that stand close together.
func (u *unified) hunk(diffs []lcs.Diff) {
	first, last := diffs[0], diffs[len(diffs)-1]
	above := min(u.context, first.Start)
	below := min(u.context, len(u.from)-last.End)
	fmt.Fprintf(u, "@@ -%s +%s @@", span(first.Start-above, last.End+below), span(first.ReplStart-above, last.ReplEnd+below))
	created := len(u.from) == 0 || len(u.to) == 0
	if place := u.place(first); place != "" && !created {
		u.WriteString(" " + place)
	}
	u.WriteString("\n")
	u.lines = u.lines[:0]
	at := first.Start - above
	for _, d := range diffs {
		u.add(" ", u.from[at:d.Start])
		u.add("-", u.from[d.Start:d.End])
		u.add("+", u.to[d.ReplStart:d.ReplEnd])
		at = d.End
	}
	u.add(" ", u.from[at:last.End+below])
	if !created {
		u.lines = markSpaces(u.lines)
	}
	for _, line := range u.lines {
		u.WriteString(line)
	}
}

// place is what holds the first line that differs.
func (u *unified) place(d lcs.Diff) string {
	if d.Start < d.End {
		return redact.EscapeLine(u.before.Place(d.Start))
	}
	return redact.EscapeLine(u.after.Place(d.ReplStart))
}

func (u *unified) add(sign string, lines []string) {
	for _, line := range lines {
		u.lines = append(u.lines, sign+line)
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
