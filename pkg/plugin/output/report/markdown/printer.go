package markdown

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
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

// New returns a printer that writes the page when it is closed, no longer than
// limit bytes; 0 stands for MaxBytes. Of the changes it holds no more than that.
func New(o output.Options, limit int) (*Printer, error) {
	if limit == 0 {
		limit = MaxBytes
	}
	p := &Printer{out: o.Out, masker: report.Masker(o), pages: pages{room: limit}, limit: limit}
	o.Out, o.Color, o.Query, o.Comparer = &p.pages, false, "", nil
	var err error
	p.inner, err = output.New(output.Markdown, o)
	return p, err
}

// Printer writes the report.
type Printer struct {
	out    io.Writer
	masker *redact.Masker
	limit  int
	inner  output.Printer // writes a block at a time to pages
	pages  pages

	problems problems
}

// Print takes one object.
func (p *Printer) Print(c engine.Change) error { return p.inner.Print(c) }

// Trouble adds a line to the summary.
func (p *Printer) Trouble(err error) error {
	p.problems.add(err, p.masker)
	return nil
}

// Close writes the page.
func (p *Printer) Close(s engine.Summary) error {
	if err := output.Flush(p.inner); err != nil {
		return err
	}
	changes := p.pages.end()
	if err := p.inner.Close(s); err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString(Marker + "\n")
	b.WriteString(heading(s) + "\n")
	p.problems.write(&b)
	b.WriteString("\n" + fit(strings.TrimLeft(p.pages.summary.String(), "\n"), (p.limit-b.Len()-reserve)/2))
	p.changes(&b, changes)
	_, err := p.out.Write(b.Bytes())
	return err
}

// heading says it in a line.
func heading(s engine.Summary) string {
	if s.Incomplete > 0 {
		return fmt.Sprintf("# Mutation policies: %d of %d objects would change, %d incomplete", s.Changed, s.Objects, s.Incomplete)
	}
	return fmt.Sprintf("# Mutation policies: %d of %d objects would change", s.Changed, s.Objects)
}

// changes writes as many of the blocks as there is room for, folded.
func (p *Printer) changes(b *bytes.Buffer, blocks []block) {
	if len(blocks) == 0 {
		return
	}
	b.WriteString("\n<details><summary>Changes</summary>\n")
	shown, short := 0, 0
	for _, at := range blocks {
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
