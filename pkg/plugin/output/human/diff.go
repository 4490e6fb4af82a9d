package human

import (
	"bytes"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
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
		text: func() (Text, error) {
			text := Text{Marker: marker(&c.Change), Body: notes.Bytes()}
			if !c.Changed() {
				return text, nil
			}
			text.Note = "  (" + wording.Plural(len(c.Fields), "field") + ")"
			text.Notes = "  (" + wording.Plural(len(c.Fields), "field") + " each; the diff is that of " + redact.EscapeLine(shortName(c.Subject)) + ")"
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

func newDiffer(o Options) objectdiff.Differ {
	return objectdiff.Differ{Masker: o.Masker, ContextLines: o.ContextLines}
}
