package markdown

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
)

// MaxBytes is what GitHub takes as a comment, and others more than that.
const MaxBytes = 64 << 10

// Marker begins the page, so that a pipeline finds its comment again to replace it.
const Marker = "<!-- kubectl-mutate preview -->"

// The bounds. reserve is kept for what stands around the changes.
const (
	reserve = 600
	// MinBytes is the least that a page can be cut to.
	MinBytes = 16 << 10
)

// NewPreview returns a printer of a page of what would change, no longer than limit
// bytes; 0 stands for MaxBytes. Of the changes it holds no more than that.
func NewPreview(o output.Options, limit int) *Preview {
	if limit == 0 {
		limit = MaxBytes
	}
	p := &Preview{out: o.Out, pages: pages{room: limit}, limit: limit}
	o.Out = &p.pages
	p.inner = human.NewMarkdown(o)
	return p
}

// Preview is the page. It is written at the end.
type Preview struct {
	out   io.Writer
	limit int
	inner *human.Markdown // writes a block at a time to pages
	pages pages

	problems human.Problems
	changes  []block
	counts   evaluation.Summary
}

// Print adds an event to the page.
func (p *Preview) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Problem:
		p.problems.Add(report.ProblemOf(e.Err).Text)
		return nil
	case output.Summary:
		if err := p.inner.Flush(); err != nil {
			return err
		}
		p.changes, p.counts = p.pages.end(), e.Summary
	}
	return p.inner.Print(s)
}

// Close writes the page.
func (p *Preview) Close() error {
	var b bytes.Buffer
	b.WriteString(Marker + "\n")
	b.WriteString(heading(p.counts) + "\n")
	b.WriteString(p.problems.String())
	b.WriteString("\n" + fit(strings.TrimLeft(p.pages.summary.String(), "\n"), (p.limit-b.Len()-reserve)/2))
	p.writeChanges(&b)
	_, err := p.out.Write(b.Bytes())
	return err
}

// heading sums up the run in a line.
func heading(s evaluation.Summary) string {
	if s.Incomplete > 0 {
		return fmt.Sprintf("# Mutation policies: %d of %d objects would change, %d incomplete", s.Changed, s.Objects, s.Incomplete)
	}
	return fmt.Sprintf("# Mutation policies: %d of %d objects would change", s.Changed, s.Objects)
}

// writeChanges writes as many of the changes as there is room for, folded.
func (p *Preview) writeChanges(b *bytes.Buffer) {
	if len(p.changes) == 0 {
		return
	}
	b.WriteString("\n<details><summary>Changes</summary>\n")
	shown, short := 0, 0
	for _, at := range p.changes {
		if b.Len()+len(at.text)+reserve > p.limit {
			at = at.heading()
		}
		if b.Len()+len(at.text)+reserve > p.limit {
			break
		}
		b.WriteString("\n" + at.text)
		shown++
		if at.short {
			short++
		}
	}
	b.WriteString("\n</details>\n")
	if rest := p.pages.blocks - shown; rest > 0 || short > 0 {
		fmt.Fprintf(b, "\n**Cut at %d KiB**: of %d changes, %d are shown without their diff and %d not at all. Objects that change alike are one change.\n",
			p.limit>>10, p.pages.blocks, short, rest)
	}
}

// fit leaves out the last lines of a text that is too long.
func fit(text string, room int) string {
	if len(text) <= room {
		return text
	}
	const cut = "\n(The summary is longer; the rest of it is left out.)\n"
	text = text[:max(room-len(cut), 0)]
	text = text[:strings.LastIndexByte(text, '\n')+1]
	if strings.Count(text, "\n```")%2 == 1 { // a fence that would stay open
		text = text[:strings.LastIndex(text, "\n```")+1]
	}
	return text + cut
}
