package human

import (
	"bytes"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plural"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/color"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/grouping"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/harmless"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/objectdiff"
)

// Diff prints a unified diff of each object under a heading that says who
// changed what.
type Diff struct {
	base
	differ objectdiff.Differ
}

// NewDiff returns a printer of unified diffs.
func NewDiff(o Options) *Diff {
	p := &Diff{base: newBase(o), differ: newDiffer(o)}
	p.spaced = true
	return p
}

// Print shows an object that would change, or of which there is something to tell.
func (p *Diff) Print(c engine.Change) error { return p.each(&c, p.print) }

func (p *Diff) print(c *part) error {
	var notes bytes.Buffer
	p.notes(&notes, c)
	return p.show(c, content{
		words: notes.Bytes(),
		text: func() (grouping.Text, error) {
			text := grouping.Text{Marker: marker(&c.Change), Body: notes.Bytes()}
			if !c.Changed() {
				return text, nil
			}
			text.Note = "  (" + plural.Of(len(c.Fields), "field") + ")"
			text.Notes = "  (" + plural.Of(len(c.Fields), "field") + " each; the diff is that of " + harmless.Line(shortName(c.Subject)) + ")"
			unified, err := p.differ.Unified(&c.Change, c.others)
			text.Body = p.painted(unified, notes)
			return text, err
		},
	})
}

// painted colours a unified diff and adds it to what stands above it.
func (h *base) painted(unified string, above bytes.Buffer) []byte {
	for l := range strings.Lines(unified) {
		content, newline := strings.CutSuffix(l, "\n")
		above.WriteString(h.Color.Paint(lineColor(content), content))
		if newline {
			above.WriteString("\n")
		}
	}
	return above.Bytes()
}

func lineColor(l string) color.Color {
	switch {
	case strings.HasPrefix(l, "--- "), strings.HasPrefix(l, "+++ "):
		return color.Bold
	case strings.HasPrefix(l, "+"):
		return color.Green
	case strings.HasPrefix(l, "-"):
		return color.Red
	case strings.HasPrefix(l, "@@"):
		return color.Cyan
	}
	return color.Plain
}

func newDiffer(o Options) objectdiff.Differ {
	return objectdiff.Differ{Masker: o.Masker, ContextLines: o.ContextLines}
}
