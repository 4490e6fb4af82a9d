package human

import (
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Diff prints a unified diff of each object under a heading that says who
// changed what.
type Diff struct {
	base
	differ objectdiff.Differ
}

// NewDiff returns a printer of unified diffs.
func NewDiff(o output.Options) *Diff {
	p := &Diff{base: newBase(o), differ: newDiffer(o)}
	p.spaced = true
	return p
}

// Print shows an object that would change, or that needs a remark, and the summary.
func (p *Diff) Print(e output.Event) error { return p.event(e, p.print) }

func (p *Diff) print(c *part) error {
	notes := p.page()
	p.notes(notes, c)
	several := p.several(notes, c, p.notes)
	return p.show(c, content{
		words: several.Bytes(),
		text: func() (Text, error) {
			text := Text{Marker: marker(&c.Change), Body: notes.Bytes()}
			if several != notes {
				text.Several = several.Bytes()
			}
			if !c.Changed() {
				return text, nil
			}
			text.Note = "  (" + wording.Fields(c.Fields) + ")"
			text.Notes = "  (" + wording.Fields(c.Fields) + " each; the diff is that of " + shortName(c.Subject) + ")"
			unified, err := p.differ.Unified(&c.Change, c.others())
			notes.diff(unified)
			text.Body = notes.Bytes()
			if several != notes {
				several.diff(unified)
				text.Several = several.Bytes()
			}
			return text, err
		},
	})
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

func newDiffer(o output.Options) objectdiff.Differ {
	return objectdiff.Differ{Masker: o.Masker, ContextLines: o.ContextLines}
}
