package render

import (
	"bytes"
	"fmt"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/fielddiff"
)

const (
	contextLines = 3
	// fieldsListed bounds the heading, not the diff: past it the fields of a rule are counted.
	fieldsListed = 20
)

// diffPrinter prints a unified diff of each object under a heading that says who
// changed what.
type diffPrinter struct {
	human
	yaml yamlWriter
}

// Print shows an object that would change, or of which there is something to tell.
func (p *diffPrinter) Print(c engine.Change) error {
	p.learn(&c)
	if !p.shown(&c) {
		return nil
	}
	var b bytes.Buffer
	if p.printed {
		b.WriteString("\n")
	}
	p.heading(&b, &c)
	if c.Changed() {
		if err := p.unified(&b, &c); err != nil {
			return fmt.Errorf("%s: %w", c.Subject, err)
		}
	}
	return p.write(&b)
}

func (p *diffPrinter) heading(b *bytes.Buffer, c *engine.Change) {
	m := marker(c)
	text := m + " " + line(c.Subject.String())
	if c.Changed() {
		text += "  (" + plural(len(c.Fields), "field") + ")"
	}
	b.WriteString(p.paint(p.markerColor(m), text) + "\n")
	for _, w := range writers(c) {
		p.writer(b, w)
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome != engine.Changed && p.told(s) {
			p.step(b, s)
		}
	}
}

// writer is a rule that changed the object, and the fields that it wrote last.
type writer struct {
	rule   engine.RuleRef
	steps  []*engine.Step
	fields []fielddiff.Field
}

// writers are the rules that changed the object, in the order in which they did.
func writers(c *engine.Change) []*writer {
	var out []*writer
	places := map[engine.RuleRef]*writer{}
	of := func(r engine.RuleRef) *writer {
		if places[r] == nil {
			places[r] = &writer{rule: r}
			out = append(out, places[r])
		}
		return places[r]
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; s.Outcome == engine.Changed {
			w := of(s.Rule)
			w.steps = append(w.steps, s)
		}
	}
	for i := range c.Fields {
		w := of(c.Fields[i].Rule)
		w.fields = append(w.fields, c.Fields[i].Field)
	}
	return out
}

func (p *diffPrinter) writer(b *bytes.Buffer, w *writer) {
	b.WriteString("  " + ruleText(w.rule))
	seen := map[string]bool{}
	for _, s := range w.steps {
		for _, label := range p.labels(s) {
			if !seen[label] {
				seen[label] = true
				b.WriteString(" (" + label + ")")
			}
		}
	}
	if len(w.fields) == 0 {
		b.WriteString(" (nothing of it is left: set back or overwritten by what ran after it)")
	}
	b.WriteString("\n")
	for i, f := range w.fields {
		if i == fieldsListed {
			fmt.Fprintf(b, "      and %s more\n", plural(len(w.fields)-i, "field"))
			break
		}
		fmt.Fprintf(b, "    %s %s\n", fieldMarker(f.Kind), p.path(f))
	}
	for _, s := range w.steps {
		p.warnings(b, s.Warnings)
	}
}

func fieldMarker(k fielddiff.Kind) string {
	switch k {
	case fielddiff.Added:
		return "+"
	case fielddiff.Removed:
		return "-"
	case fielddiff.Moved:
		return ">"
	}
	return "~"
}

func (p *diffPrinter) path(f fielddiff.Field) string {
	text := fielddiff.PathString(p.Masker.Path(f.Path))
	if text == "" {
		text = "(the whole object)"
	}
	if f.Kind == fielddiff.Moved {
		text += fmt.Sprintf(" (from place %v to %v)", f.From, f.To)
	}
	return text
}

// unified writes the diff of the two states' YAML. Characters are made harmless
// before they are compared, so that a line break in a name cannot forge a line.
func (p *diffPrinter) unified(b *bytes.Buffer, c *engine.Change) error {
	hide := hidden(noise(), c.Fields)
	before, after := p.Masker.Pair(trim(c.Before, hide), trim(c.After, hide))
	from, err := p.text(before)
	if err != nil {
		return err
	}
	to, err := p.text(after)
	if err != nil {
		return err
	}
	name := line(c.Subject.String())
	unified, err := udiff.ToUnified(name+" (before)", name+" (after)", from, udiff.Lines(from, to), contextLines)
	if err != nil {
		return fmt.Errorf("comparing: %w", err)
	}
	for _, l := range strings.SplitAfter(unified, "\n") {
		content, newline := strings.CutSuffix(l, "\n")
		b.WriteString(p.paint(lineColor(content), content))
		if newline {
			b.WriteString("\n")
		}
	}
	return nil
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

// text is an object as YAML, and nothing for an object that is not there.
func (p *diffPrinter) text(u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return "", nil
	}
	out, err := p.yaml.object(u.Object)
	return Harmless(out), err
}
