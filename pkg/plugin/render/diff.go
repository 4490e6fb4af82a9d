package render

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/grouping"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/linediff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/yamltext"
)

// DefaultContextLines are shown around each line that differs.
const DefaultContextLines = 3

// diffPrinter prints a unified diff of each object under a heading that says who
// changed what.
type diffPrinter struct {
	human
	differ
}

func newDiff(o Options) *diffPrinter {
	p := &diffPrinter{human: newHuman(o)}
	p.spaced = true
	return p
}

// Print shows an object that would change, or of which there is something to tell.
func (p *diffPrinter) Print(c engine.Change) error {
	p.begin(&c)
	if !p.shown(&c) {
		return nil
	}
	var notes bytes.Buffer
	p.notes(&notes, &c)
	return p.show(&c, shown{
		words: notes.Bytes(),
		text: func() (grouping.Text, error) {
			text := grouping.Text{Marker: marker(&c), Body: notes.Bytes()}
			if !c.Changed() {
				return text, nil
			}
			text.Note = "  (" + plural(len(c.Fields), "field") + ")"
			text.Notes = "  (" + plural(len(c.Fields), "field") + " each; the diff is that of " + line(shortName(c.Subject)) + ")"
			unified, err := p.unified(&p.Options, &c)
			text.Body = p.painted(unified, notes)
			return text, err
		},
	})
}

// painted colours a unified diff and adds it to what stands above it.
func (h *human) painted(unified string, above bytes.Buffer) []byte {
	for l := range strings.Lines(unified) {
		content, newline := strings.CutSuffix(l, "\n")
		above.WriteString(h.paint(lineColor(content), content))
		if newline {
			above.WriteString("\n")
		}
	}
	return above.Bytes()
}

func lineColor(l string) string {
	switch {
	case strings.HasPrefix(l, "--- "), strings.HasPrefix(l, "+++ "):
		return bold
	case strings.HasPrefix(l, "+"):
		return green
	case strings.HasPrefix(l, "-"):
		return red
	case strings.HasPrefix(l, "@@"):
		return cyan
	}
	return ""
}

// differ compares the states of objects as text.
type differ struct{ yaml yamltext.Writer }

// unified is the diff of the two states' YAML. Characters are made harmless before
// they are compared, so that a line break in a name cannot forge a line.
func (d *differ) unified(o *Options, c *engine.Change) (string, error) {
	from, to, err := d.texts(o, c)
	if err != nil {
		return "", err
	}
	name := line(c.Subject.String())
	names := linediff.Names{Before: name + " (before)", After: name + " (after)"}
	lines := o.ContextLines
	switch {
	case lines == 0:
		lines = DefaultContextLines
	case lines < 0:
		lines = 0
	}
	text, err := linediff.Unified(names, from, to, lines)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.Subject, err)
	}
	return text, nil
}

// texts are the two states as they may be shown.
func (d *differ) texts(o *Options, c *engine.Change) (from, to string, err error) {
	hide := hidden(noise(), c.Fields)
	before, after := o.Masker.Pair(trim(c.Before, hide), trim(c.After, hide))
	if from, err = d.text(before); err == nil {
		to, err = d.text(after)
	}
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", c.Subject, err)
	}
	return from, to, nil
}

// text is an object as YAML, and nothing for an object that is not there.
func (d *differ) text(u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return "", nil
	}
	out, err := d.yaml.Object(u.Object)
	return Harmless(out), err
}
