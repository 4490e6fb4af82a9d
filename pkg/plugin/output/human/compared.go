package human

import (
	"errors"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Compared says who changes what, and leaves it to a Comparer to show how.
type Compared struct {
	base
	differ objectdiff.Differ
}

// NewCompared returns a printer that shows the differences with the Comparer of the
// options.
func NewCompared(o output.Options) *Compared {
	return &Compared{base: newBase(o), differ: newDiffer(o)}
}

// Print shows the heading of an object, and hands it to the Comparer.
func (p *Compared) Print(e output.Event) error {
	switch e := e.(type) {
	case output.Fleet:
		return p.fleet(e)
	case output.Evaluated:
		return p.change(e.Change)
	case output.Summary:
		return p.summarize(e.Summary)
	}
	return nil
}

func (p *Compared) change(c *engine.Change) error {
	if err := p.each(c, p.print); err != nil || !c.Changed() {
		return err
	}
	from, to, err := p.differ.Texts(c, nil)
	if err != nil {
		return err
	}
	return p.Comparer.Add(comparedName(c.Subject), from.Text, to.Text)
}

func (p *Compared) print(c *part) error {
	notes := p.page()
	p.notes(notes, c)
	several := p.several(notes, c, p.notes)
	text := Text{Marker: marker(&c.Change), Body: notes.Bytes()}
	if several != notes {
		text.Several = several.Bytes()
	}
	if c.Changed() {
		text.Note = "  (" + wording.Fields(c.Fields) + ")"
		text.Notes = "  (" + wording.Fields(c.Fields) + " each)"
	}
	return p.show(c, content{words: several.Bytes(), text: func() (Text, error) { return text, nil }})
}

// summarize has the objects compared, and then sums up even if that fails.
func (p *Compared) summarize(s evaluation.Summary) error {
	if err := p.Flush(); err != nil {
		return err
	}
	var failed error
	if s.Changed > 0 {
		failed = p.Comparer.Compare()
	}
	return errors.Join(failed, p.base.summarize(s))
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
