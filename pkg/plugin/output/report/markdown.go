// This file writes a run as Markdown for a comment on a change: the summary first, then the changes, cut
// where there is no more room.

package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/human"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// MaxMarkdownBytes is the maximum length of a comment on GitHub; others take more.
const MaxMarkdownBytes = 64 << 10

// MarkdownMarker begins the page, so that a pipeline finds its comment and replaces it.
const MarkdownMarker = "<!-- kubectl-mutate preview -->"

// The limits. reserve is the room for what surrounds the changes.
const (
	reserve = 600
	// MinMarkdownBytes is the smallest limit of a page.
	MinMarkdownBytes = 16 << 10
)

// NewMarkdown returns a printer of a page of changes, differences, conversions or tests with at most limit
// bytes; 0 stands for MaxMarkdownBytes. It holds no more than that in memory.
func NewMarkdown(o output.Options, limit int) *Markdown {
	if limit == 0 {
		limit = MaxMarkdownBytes
	}
	p := &Markdown{out: o.Out, compares: o.Compares || o.Converts ||
		o.Tests, converts: o.Converts, pages: pages{limit: limit, room: limit}}
	o.Out = &p.pages
	switch p.inner = output.Format(human.NewMarkdown(o)); {
	case o.Tests:
		p.inner = human.NewTests(o, "markdown")
	case p.compares:
		p.inner = human.NewComparison(o, "markdown")
	}
	return p
}

// Markdown writes at its end the blocks that another format writes.
type Markdown struct {
	out      io.Writer
	compares bool // or converts, or tests
	converts bool
	inner    output.Format
	pages    pages
	problems human.Problems // of a preview
	counts   evaluation.Summary
}

// Print adds an event to the page.
func (p *Markdown) Print(s output.Shown) error {
	switch e := s.Event().(type) {
	case output.Problem:
		if !p.compares {
			p.problems.Add(ProblemOf(e.Err).Text)
			return nil
		}
	case output.Summary:
		p.counts = e.Summary
	}
	if output.Ends(s.Event()) {
		if err := output.Flush(p.inner); err != nil {
			return err
		}
		p.pages.ended = true
	}
	return p.inner.Print(s)
}

// Close writes the page.
func (p *Markdown) Close() error {
	var b bytes.Buffer
	if p.compares {
		p.comparison(&b)
	} else {
		p.preview(&b)
	}
	_, err := p.out.Write(b.Bytes())
	return err
}

func (p *Markdown) preview(b *bytes.Buffer) {
	b.WriteString(MarkdownMarker + "\n")
	b.WriteString(heading(p.counts) + "\n")
	b.WriteString(p.problems.String())
	b.WriteString("\n" + fit(p.pages.after(0), (p.pages.limit-b.Len()-reserve)/2))
	if len(p.pages.held) > 0 {
		b.WriteString("\n<details><summary>Changes</summary>\n")
		note := p.pages.fill(b, p.pages.limit-reserve+1, "change", "diff", " Objects that change alike are one change.")
		b.WriteString("\n</details>\n" + note)
	}
}

// comparison writes the overview, as many of the objects as there is room for, and how the rules were
// exercised.
func (p *Markdown) comparison(b *bytes.Buffer) {
	last := p.pages.after(1)
	b.WriteString(fit(p.pages.after(0), MaxMarkdownBytes/4)) // with the errors
	// how the rules were exercised may be cut, too
	room := max(MaxMarkdownBytes-b.Len()-reserve-len(last), MaxMarkdownBytes/4)
	one, below, alike := "difference", "fields", " Objects that differ alike are one difference."
	if p.converts {
		one, below, alike = "policy", "texts", ""
	}
	b.WriteString(p.pages.fill(b, b.Len()+room, one, below, alike))
	if last != "" {
		b.WriteString("\n" + fit(last, MaxMarkdownBytes-b.Len()-1))
	}
}

// heading sums up the run in a line.
func heading(s evaluation.Summary) string {
	if s.Incomplete > 0 {
		return fmt.Sprintf("# Mutation policies: %d of %d objects would change, %d incomplete", s.Changed, s.Objects, s.Incomplete)
	}
	return fmt.Sprintf("# Mutation policies: %d of %d objects would change", s.Changed, s.Objects)
}

// fit cuts the last lines of a string that is too long.
func fit(text string, room int) string {
	if len(text) <= room {
		return text
	}
	const cut = "\n(The summary is longer; the rest of it is left out.)\n"
	text = text[:max(room-len(cut), 0)]
	text = text[:strings.LastIndexByte(text, '\n')+1]
	if strings.Count(text, "\n```")%2 == 1 { // an open fence
		text = text[:strings.LastIndex(text, "\n```")+1]
	}
	return text + cut
}

// block shows objects that change alike: a heading, and a fenced text below it.
type block struct {
	text  string
	short bool // only the heading
}

func (b block) heading() block {
	text, _, _ := strings.Cut(b.text, "\n\n```")
	return block{text: strings.TrimSuffix(text, "\n") + "\n", short: true}
}

// pages takes the blocks of the changes, and then those that end the page. It keeps as many changes as could
// be shown.
type pages struct {
	limit   int // of the page
	room    int
	held    []block
	blocks  int
	ended   bool
	endings []string // the blocks after the changes
}

// after returns the first or second block after the changes.
func (p *pages) after(i int) string {
	if i >= len(p.endings) {
		return ""
	}
	return strings.TrimLeft(p.endings[i], "\n")
}

// Write takes a block: the printer writes each at once.
func (p *pages) Write(b []byte) (int, error) {
	if p.ended {
		p.endings = append(p.endings, string(b))
		return len(b), nil
	}
	p.blocks++
	at := block{text: strings.TrimLeft(string(b), "\n")}
	if len(at.text) > p.room {
		at = at.heading()
	}
	if len(at.text) <= p.room {
		p.room -= len(at.text)
		p.held = append(p.held, at)
	}
	return len(b), nil
}

// fill writes as many of the blocks as fit into a page of length end, and returns a note on the others,
// which names one of them, what was cut below the headings, and which objects share a block.
func (p *pages) fill(b *bytes.Buffer, end int, one, below, alike string) (note string) {
	shown, short := 0, 0
	for _, at := range p.held {
		if b.Len()+1+len(at.text) > end {
			at = at.heading()
		}
		if b.Len()+1+len(at.text) > end {
			break
		}
		b.WriteString("\n" + at.text)
		shown++
		if at.short {
			short++
		}
	}
	if shown == p.blocks && short == 0 {
		return ""
	}
	return fmt.Sprintf("\n**Cut at %d KiB**: of %s, %d are shown without their %s and %d not at all.%s\n",
		p.limit>>10, wording.Plural(p.blocks, one), short, below, p.blocks-shown, alike)
}
