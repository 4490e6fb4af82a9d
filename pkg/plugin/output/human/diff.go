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

// Diff prints a unified diff of each object below a heading that says who changed what. A Comparer in the
// options shows the differences instead.
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

// Print shows an object that would change or needs a remark, and the summary.
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

// NewDiffer returns the Differ of a diff or a comparison.
func NewDiffer(o output.Options) output.Differ {
	out := output.Differ{ContextLines: o.ContextLines}
	if o.Compares {
		out.Names = output.UnifiedNames{Before: compare.Old.String(), After: compare.New.String()}
	}
	return out
}

// comparedName returns an object's name as in kubectl diff: group, version, kind, namespace and name.
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

// NewMarkdown returns a printer of the diff format as Markdown, for a comment on a change or a ticket.
// Strings from clusters and policies are only in code spans and fenced blocks, so that nothing in them is
// read as Markdown or HTML.
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

// markdownTable writes rows below a head, with numbers in all columns after the first few.
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

// cell returns a code span for a table.
func cell(text string) string { return strings.ReplaceAll(codeSpan(text), "|", `\|`) }

// severitySuffix returns the suffix for the name of a rule.
func severitySuffix(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// codeSpan returns a string as one escaped line in a code span.
func codeSpan(s string) string {
	s = redact.EscapeLine(s)
	fence := strings.Repeat("`", longestRun(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// fenced writes lines of a page between fences that are longer than any in them.
func fenced(b *page, language, text string) {
	fence := strings.Repeat("`", max(longestRun(text)+1, 3))
	b.WriteString("\n" + fence + language + "\n" + text + fence + "\n")
}

// longestRun returns the length of the longest run of backticks.
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

// maxProblems is the maximum number of problems on a page of Markdown.
const maxProblems = 20

// Problems are the errors that are not about objects, for a page of Markdown: it is read where standard
// error is not. The zero value is empty.
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

// String returns a list below an empty line; empty without problems.
func (p *Problems) String() string {
	switch {
	case len(p.lines) == 0:
		return ""
	case p.more > 0:
		return "\n" + strings.Join(p.lines, "") + fmt.Sprintf("- and %d more errors\n", p.more)
	}
	return "\n" + strings.Join(p.lines, "")
}

// spanBytes is the maximum length of a ShortSpan.
const spanBytes = 500

// ShortSpan returns a code span of a string, shortened if it is long.
func ShortSpan(text string) string { return codeSpan(engine.Shorten(text, spanBytes)) }
