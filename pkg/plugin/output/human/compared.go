package human

import (
	"bytes"
	"errors"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Comparer shows how objects differ in its own way. Compared adds each object that
// would change, under kubectl's name for it, and then has them compared.
type Comparer interface {
	Add(name, before, after string) error
	Compare() error
}

// Compared says who changes what, and leaves to another program to show how.
type Compared struct {
	base
	differ   objectdiff.Differ
	comparer Comparer
}

// NewCompared returns a printer that has a Comparer show the differences.
func NewCompared(o Options, comparer Comparer) *Compared {
	return &Compared{base: newBase(o), differ: newDiffer(o), comparer: comparer}
}

// Print shows the heading of an object and hands it to the program.
func (p *Compared) Print(c engine.Change) error {
	if err := p.each(&c, p.print); err != nil || !c.Changed() {
		return err
	}
	from, to, err := p.differ.Texts(&c, nil)
	if err != nil {
		return err
	}
	return p.comparer.Add(comparedName(c.Subject), from.Text, to.Text)
}

func (p *Compared) print(c *part) error {
	var notes bytes.Buffer
	p.notes(&notes, c)
	text := Text{Marker: marker(&c.Change), Body: notes.Bytes()}
	if c.Changed() {
		text.Note = "  (" + wording.Plural(len(c.Fields), "field") + ")"
		text.Notes = "  (" + wording.Plural(len(c.Fields), "field") + " each)"
	}
	return p.show(c, content{words: notes.Bytes(), text: func() (Text, error) { return text, nil }})
}

// Close has the objects compared, and then sums up, whatever became of that.
func (p *Compared) Close(s engine.Summary) error {
	if err := p.Flush(); err != nil {
		return err
	}
	var failed error
	if s.Changed > 0 {
		failed = p.comparer.Compare()
	}
	return errors.Join(failed, p.base.Close(s))
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
