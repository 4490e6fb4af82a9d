package human

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Diff prints a unified diff of each object under a heading that says who
// changed what. Where the options have a Comparer, that shows the differences instead.
type Diff struct {
	base
	differ output.Differ
}

// NewDiff returns a printer of unified diffs.
func NewDiff(o output.Options) *Diff {
	p := &Diff{base: newBase(o), differ: NewDiffer(o)}
	p.spaced = o.Comparer == nil || o.Explain
	return p
}

// Print shows an object that would change, or that needs a remark, and the summary.
func (p *Diff) Print(shown output.Shown) error {
	c, isChange := shown.Event().(output.Evaluated)
	s, ends := shown.Event().(output.Summary)
	switch {
	case p.Comparer != nil && isChange && c.Changed():
		from, to, err := p.differ.Texts(c.Change, nil)
		if err != nil {
			return err
		}
		return cmp.Or(p.event(shown, p.print), p.Comparer.Add(comparedName(c.Subject), from.Text, to.Text))
	case p.Comparer != nil && ends && s.Changed > 0:
		if err := p.Flush(); err != nil {
			return err
		}
		return errors.Join(p.Comparer.Compare(), p.summarize(s.Summary))
	}
	return p.event(shown, p.print)
}

func (p *Diff) print(c *part) error {
	notes := p.page()
	p.notes(notes, c)
	several := p.several(notes, c, p.notes)
	return p.show(c, several.Bytes(), func() (shown, error) {
		text := shown{marker: marker(&c.Change), body: notes.Bytes(), several: several.Bytes()}
		if !c.Changed() {
			return text, nil
		}
		fields := fieldsOf(&c.Change)
		text.note = "  (" + fields + ")"
		if p.Comparer != nil {
			text.notes = "  (" + fields + " each)"
			return text, nil
		}
		text.notes = "  (" + fields + " each; the diff is that of " + shortName(c.Subject) + ")"
		unified, err := p.differ.Unified(&c.Change, c.others)
		text.diff = p.unified(unified)
		return text, err
	})
}

// fieldsOf counts the fields of a change.
func fieldsOf(c *engine.Change) string {
	if c.AsCreated {
		return wording.Fields(c.Fields) + ", as if created"
	}
	return wording.Fields(c.Fields)
}

func lineColor(l string) Color {
	switch {
	case strings.HasPrefix(l, "--- "), strings.HasPrefix(l, "+++ "):
		return Bold
	case strings.HasPrefix(l, "+"):
		return Green
	case strings.HasPrefix(l, "-"):
		return Red
	case strings.HasPrefix(l, "@@"):
		return Cyan
	}
	return Plain
}

// NewDiffer returns what compares states as the diff format does, or the sides of a comparison.
func NewDiffer(o output.Options) output.Differ {
	out := output.Differ{ContextLines: o.ContextLines}
	if o.Compares {
		out.Names = output.UnifiedNames{Before: compare.Old.String(), After: compare.New.String()}
	}
	return out
}

// comparedName is an object's name as kubectl diff has it: group, version, kind,
// namespace and name.
func comparedName(k engine.ObjectKey) string {
	name := strings.Join([]string{k.Version, k.Kind, k.Namespace, k.Name}, ".")
	if k.Group != "" {
		name = k.Group + "." + name
	}
	if k.Cluster != "" {
		name = k.Cluster + "." + name
	}
	return name
}

// NewMarkdown returns a printer of what the diff format prints as Markdown, for a comment on a change or
// a ticket. What comes from clusters and policies stands in code spans and fenced blocks
// alone, so that nothing in it is read as Markdown or HTML.
func NewMarkdown(o output.Options) *Diff {
	o.Color = false
	p := NewDiff(o)
	p.markdown = true
	return p
}

// markdownSummary ends a page of Markdown.
func (h *base) markdownSummary(b *page, s evaluation.Summary) {
	b.WriteString("## Summary\n\n" + wording.Counts(s) + "\n")
	for _, text := range h.remarkable(s) {
		b.WriteString("\n" + text + "\n")
	}
	h.table(b, s)
	if s.Changed > fewObjects {
		h.frequent(b)
	}
	for _, list := range h.lists(s) {
		h.list(b, list)
	}
	if lines := h.last(s); len(lines) > 0 {
		last := h.page()
		for _, text := range lines {
			last.line(Plain, text)
		}
		fenced(b, "", last.String())
	}
}

// markdownTable writes rows below a head. The first few columns have strings, the others numbers.
func markdownTable(b *page, strs int, rows [][]string) {
	for i, row := range rows {
		line := "| " + strings.Join(row, " | ") + " |\n"
		if i == 0 {
			line = strings.ToLower(line) + "|" + strings.Repeat("---|", strs) +
				strings.Repeat("---:|", len(row)-strs) + "\n"
		}
		b.WriteString(line)
	}
}

// cell is a code span in a table.
func cell(text string) string { return strings.ReplaceAll(codeSpan(text), "|", `\|`) }

// severitySuffix stands behind the name of a rule.
func severitySuffix(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// codeSpan shows a string as one line, escaped, between more backticks than it holds.
func codeSpan(s string) string {
	s = redact.EscapeLine(s)
	fence := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// fenced shows lines of a page as they are, between fences longer than any in them.
func fenced(b *page, language, text string) {
	fence := strings.Repeat("`", max(longestRun(text)+1, 3))
	b.WriteString("\n" + fence + language + "\n" + text + fence + "\n")
}

// longestRun counts the backticks of the longest run of them.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		run++
		if s[i] != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// maxProblems bounds how many problems a page of Markdown lists.
const maxProblems = 20

// Problems are what went wrong beside the objects, for a page of Markdown: it is read where
// standard error is not. The zero value has none.
type Problems struct {
	lines []string
	more  int // that are not listed
}

// Add adds a problem.
func (p *Problems) Add(text string) {
	if len(p.lines) == maxProblems {
		p.more++
		return
	}
	p.lines = append(p.lines, "- error: "+ShortSpan(text)+"\n")
}

// String returns a list below an empty line; it is empty if there are none.
func (p *Problems) String() string {
	switch {
	case len(p.lines) == 0:
		return ""
	case p.more > 0:
		return "\n" + strings.Join(p.lines, "") + fmt.Sprintf("- and %d more errors\n", p.more)
	}
	return "\n" + strings.Join(p.lines, "")
}

// spanBytes bounds a code span on a line.
const spanBytes = 500

// ShortSpan is a code span of a string that is cut where it is long.
func ShortSpan(text string) string { return codeSpan(engine.Shorten(text, spanBytes)) }
