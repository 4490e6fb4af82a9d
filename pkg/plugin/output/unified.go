package output

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff/lcs"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// UnifiedNames are the names of the two states above a diff.
type UnifiedNames struct{ Before, After string }

// unified writes a diff.
type unified struct {
	bytes.Buffer
	before, after *Document
	from, to      []string // their lines
	context       int
}

// unifiedDiff returns the unified diff of two documents with so many lines of context, empty if they are
// equal. The head of a hunk names the holder of the first line that differs, as git names a function: "@@
// -40,7 +41,7 @@ spec.containers[web].env". Lines that differ only in white space are marked.
func unifiedDiff(names UnifiedNames, before, after *Document, context int) string {
	lines := func(d *Document) []string {
		all := make([]string, 0, strings.Count(d.Text, "\n")+1)
		return slices.AppendSeq(all, strings.Lines(d.Text))
	}
	u := unified{before: before, after: after, context: context, from: lines(before), to: lines(after)}
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

// hunk writes differences that are close to each other.
func (u *unified) hunk(diffs []lcs.Diff) {
	first, last := diffs[0], diffs[len(diffs)-1]
	above := min(u.context, first.Start)
	below := min(u.context, len(u.from)-last.End)
	u.WriteString("@@ -" + span(first.Start-above, last.End+below) + " +" +
		span(first.ReplStart-above, last.ReplEnd+below) + " @@")
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

// place names the holder of the first line that differs.
func (u *unified) place(d lcs.Diff) string {
	if d.Start < d.End {
		return redact.EscapeLine(u.before.Place(d.Start))
	}
	return redact.EscapeLine(u.after.Place(d.ReplStart))
}

// lines writes lines after a sign.
func (u *unified) lines(sign byte, lines []string) {
	for _, line := range lines {
		u.WriteByte(sign)
		u.WriteString(line)
	}
}

// span names lines, counted from 0, as GNU diff does: an empty span by the line before it.
func span(first, end int) string {
	switch end - first {
	case 0:
		return strconv.Itoa(first) + ",0"
	case 1:
		return strconv.Itoa(first + 1)
	}
	return strconv.Itoa(first+1) + "," + strconv.Itoa(end-first)
}

// DefaultContextLines is the default number of lines around each line that differs.
const DefaultContextLines = 3

// Differ compares the states of objects.
type Differ struct {
	// ContextLines is the number of lines around each line that differs; 0 is DefaultContextLines, and a
	// negative number no lines.
	ContextLines int
	// Names of the two states, "before" and "after" by default.
	Names UnifiedNames
}

// Unified returns the unified diff of the two states as YAML, empty if that is equal. Others are differences
// besides those of the change, which are not shown. Characters are escaped before the comparison, so that a
// line break in a name cannot forge a line.
func (d *Differ) Unified(c *engine.Change, others []engine.FieldChange) (string, error) {
	before, after, err := d.Texts(c, others)
	if err != nil {
		return "", err
	}
	name := redact.EscapeLine(c.Subject.String())
	is := "after"
	if c.AsCreated {
		is = "as if created"
	}
	names := UnifiedNames{Before: name + " (" + cmp.Or(d.Names.Before, "before") + ")", After: name + " (" +
		cmp.Or(d.Names.After, is) + ")"}
	return unifiedDiff(names, before, after, max(cmp.Or(d.ContextLines, DefaultContextLines), 0)), nil
}

// Texts returns the two states as YAML, as they may be shown, and empty where there is no object. They
// differ only in the fields of the change: what is equal to the server is not a difference to a reader.
func (d *Differ) Texts(c *engine.Change, others []engine.FieldChange) (before, after *Document, err error) {
	to := c.After
	if c.Before != nil && c.After != nil {
		wanted, records := engine.SplitRecords(c.Fields)
		to = &unstructured.Unstructured{Object: diff.Subset(c.Before.Object, c.After.Object, wanted,
			slices.Concat(records, others))}
	}
	var states [2]*Document
	for i, u := range []*unstructured.Unstructured{c.Before, to} {
		states[i] = &Document{}
		if u == nil {
			continue
		}
		var w yamlWriter
		if err := w.fields(redact.Trim(u, c.Fields, redact.Readable).Object, 0, nil); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.Subject, err)
		}
		states[i].Text, states[i].lines = redact.EscapeLines(w.String()), w.lines // each line stays one
	}
	return states[0], states[1], nil
}

// spaceLegend follows lines with marked white space. Remarks in a unified diff begin with a backslash.
const spaceLegend = "\\ only white space differs: · is a space, → a tab\n"

// markSpaces marks the white space of lines that differ in nothing else, and would look the same.
func markSpaces(removed, added []string) (markedRemoved, markedAdded []string, legend string) {
	byWords := map[string]int{} // the place of a line with these words
	for i, l := range removed {
		byWords[words(l)] = i
	}
	markedRemoved, markedAdded = slices.Clone(removed), slices.Clone(added)
	for i, l := range added {
		if at, ok := byWords[words(l)]; ok {
			a, b := markPair(removed[at], l)
			markedRemoved[at], markedAdded[i] = a, b
			if a != removed[at] || b != l {
				legend = spaceLegend
			}
		}
	}
	return markedRemoved, markedAdded, legend
}

func words(line string) string { return strings.Join(strings.Fields(line), " ") }

// markPair marks the white space in which two lines of the same words differ, except for visible
// indentation.
func markPair(a, b string) (markedA, markedB string) {
	ofA, ofB := pieces(a), pieces(b)
	for i := 0; i < len(ofA); i += 2 {
		indents := i == 0 && len(ofA) > 1 && strings.Trim(ofA[i]+ofB[i], " ") == ""
		if ofA[i] != ofB[i] && !indents {
			ofA[i], ofB[i] = marked(ofA[i]), marked(ofB[i])
		}
	}
	return strings.Join(ofA, ""), strings.Join(ofB, "")
}

// pieces returns white space and words in turns, beginning and ending with white space.
func pieces(line string) []string {
	out := []string{""}
	for _, r := range line {
		if unicode.IsSpace(r) != (len(out)%2 == 1) {
			out = append(out, "")
		}
		out[len(out)-1] += string(r)
	}
	if len(out)%2 == 0 {
		out = append(out, "")
	}
	return out
}

// marked makes white space visible.
func marked(space string) string {
	var b strings.Builder
	for _, r := range space {
		switch r {
		case ' ':
			b.WriteRune('·')
		case '\t':
			b.WriteRune('→')
		case '\n':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
