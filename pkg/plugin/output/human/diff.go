package human

import (
	"cmp"
	"errors"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/objectdiff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// Diff prints a unified diff of each object under a heading that says who
// changed what. Where the options have a Comparer, that shows the differences instead.
type Diff struct {
	base
	differ objectdiff.Differ
}

// NewDiff returns a printer of unified diffs.
func NewDiff(o output.Options) *Diff {
	p := &Diff{base: newBase(o), differ: NewDiffer(o)}
	p.spaced = o.Comparer == nil || o.Explain
	return p
}

// Print shows an object that would change, or that needs a remark, and the summary.
func (p *Diff) Print(shown output.Shown) error {
	c, isChange := shown.Event().(output.Evaluated)
	s, ends := shown.Event().(output.Summary)
	switch {
	case p.Comparer != nil && isChange && c.Changed():
		from, to, err := p.differ.Texts(c.Change, nil)
		if err != nil {
			return err
		}
		return cmp.Or(p.each(c.Change, p.print), p.Comparer.Add(comparedName(c.Subject), from.Text, to.Text))
	case p.Comparer != nil && ends && s.Changed > 0:
		if err := p.Flush(); err != nil {
			return err
		}
		return errors.Join(p.Comparer.Compare(), p.summarize(s.Summary))
	}
	return p.event(shown, p.print)
}

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
			if p.Comparer != nil {
				text.Notes = "  (" + wording.Fields(c.Fields) + " each)"
				return text, nil
			}
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

// NewDiffer returns what compares states as the diff format does, or the sides of a comparison.
func NewDiffer(o output.Options) objectdiff.Differ {
	out := objectdiff.Differ{ContextLines: o.ContextLines}
	if o.Compares {
		out.Names = objectdiff.UnifiedNames{Before: compare.Old.String(), After: compare.New.String()}
	}
	return out
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
