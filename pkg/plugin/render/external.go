package render

import (
	"bytes"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/render/grouping"
)

// Comparer shows how objects differ in its own way. A Printer adds each object
// that would change, under kubectl's name for it, and then has them compared.
type Comparer interface {
	Add(name, before, after string) error
	Compare() error
}

// comparedPrinter says who changes what, and leaves to another program to show how.
type comparedPrinter struct {
	human
	differ
}

// Print shows the heading of an object and hands it to the program.
func (p *comparedPrinter) Print(c engine.Change) error {
	p.begin(&c)
	if !p.shown(&c) {
		return nil
	}
	if c.Changed() {
		from, to, err := p.texts(&p.Options, &c)
		if err == nil {
			err = p.Comparer.Add(comparedName(c.Subject), from, to)
		}
		if err != nil {
			return err
		}
	}
	var notes bytes.Buffer
	p.notes(&notes, &c)
	text := grouping.Text{Marker: marker(&c), Body: notes.Bytes()}
	if c.Changed() {
		text.Note = "  (" + plural(len(c.Fields), "field") + ")"
		text.Notes = "  (" + plural(len(c.Fields), "field") + " each)"
	}
	return p.show(&c, shown{words: notes.Bytes(), text: func() (grouping.Text, error) { return text, nil }})
}

// Close has the objects compared, and then sums up.
func (p *comparedPrinter) Close(s engine.Summary) error {
	if err := p.Flush(); err != nil {
		return err
	}
	if s.Changed > 0 {
		if err := p.Comparer.Compare(); err != nil {
			return err
		}
	}
	return p.human.Close(s)
}

// comparedName is an object's name as kubectl diff has it: group, version, kind,
// namespace and name.
func comparedName(k engine.ObjectKey) string {
	name := strings.Join([]string{k.Version, k.Kind, k.Namespace, k.Name}, ".")
	if k.Group != "" {
		name = k.Group + "." + name
	}
	return name
}
