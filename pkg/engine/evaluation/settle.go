package evaluation

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// maxAdmissions bounds how often an object goes through its own rules because effects have changed it.
const maxAdmissions = 5

// mark is how far a pass has come.
type mark struct {
	target engine.Target
	state  *unstructured.Unstructured
	steps  int
}

func (p *pass) mark() mark {
	return mark{target: p.target, state: p.rec.state, steps: len(p.rec.steps)}
}

// reset returns a pass to a mark.
func (p *pass) reset(m mark) {
	p.target, p.rec.state, p.rec.steps = m.target, m.state, p.rec.steps[:m.steps]
}

// settle shows an object that effects have changed to its own rules, like admission of the write, then their
// result to the effects, including effects that only the new labels select, until nothing changes. Rules that
// do not settle are not idempotent: the object stays as it was.
func (p *pass) settle(scoped bool) error {
	own := scoped && covers(p.chains.own, &p.target)
	if !own && !p.selectedLate() {
		return nil
	}
	first := p.mark()
	for range maxAdmissions {
		last := p.mark()
		if own {
			if err := p.chain(); err != nil {
				return err
			}
		}
		if p.target.Object != last.target.Object || p.selectedLate() {
			p.unselected = nil
			if err := p.act(turn{}, end); err != nil {
				return err
			}
		}
		same := p.target.Object == last.target.Object ||
			diff.Same(p.target.Object.Object, last.target.Object.Object)
		switch denied := p.denied(last.steps); {
		case same && !denied:
			p.reset(last)
			return nil
		case denied:
			p.keepNews(last)
			return nil
		}
		p.keepNews(last)
	}
	p.reset(first)
	return nil
}

// relabelling returns the objects to which their own rules may give the labels by which rules select
// triggers: they must be read as triggers.
func (c *chains) relabelling() []engine.Selection {
	var byLabels, out []engine.Selection
	for _, rule := range c.rules {
		byLabels = append(byLabels, labelled(rule.wants)...)
	}
	for _, s := range withoutLabels(byLabels) {
		for _, own := range c.own {
			if !own.MayMeet(s) {
				continue
			}
			one := s
			one.Labels = own.Labels
			one.Namespace, one.Name = cmp.Or(s.Namespace, own.Namespace), cmp.Or(s.Name, own.Name)
			out = append(out, c.narrow(one)...)
		}
	}
	return out
}

// relabelled returns the subjects of effects that may get the labels by which rules select their matches:
// they must be read as matches.
func (c *chains) relabelled() []engine.Selection {
	if c == nil {
		return nil
	}
	var out engine.SelectionSet
	for _, s := range withoutLabels(labelled(c.own)) {
		for _, f := range c.effects.all {
			if f.Subjects.Subresource != "" || !c.mayBe(s, f.Subjects) {
				continue
			}
			one := s
			if f.Subjects.Exact() {
				one.Namespace, one.Name = f.Subjects.Namespace, f.Subjects.Name
			}
			out.Add(one)
		}
	}
	return out.All
}

func labelled(all []engine.Selection) []engine.Selection {
	return slices.DeleteFunc(slices.Clone(all), func(s engine.Selection) bool { return s.Labels == nil })
}

// selectedLate reports whether new labels of the object are selected by effects that have passed it by.
func (p *pass) selectedLate() bool {
	return slices.ContainsFunc(p.unselected, func(f *orderedEffect) bool { return f.selects(p.target.Object) })
}

// denied reports whether admission would deny the object, from the given step on.
func (p *pass) denied(from int) bool {
	return slices.ContainsFunc(p.rec.steps[from:],
		func(s engine.Step) bool { return s.Outcome == engine.Denied })
}

// keepNews drops the steps since a mark that were reported before it.
func (p *pass) keepNews(m mark) {
	told := p.rec.steps[:m.steps:m.steps]
	steps := told
	for _, s := range p.rec.steps[m.steps:] {
		again := slices.ContainsFunc(told, func(t engine.Step) bool {
			return t.Rule == s.Rule && t.Trigger == s.Trigger && t.Outcome == s.Outcome
		})
		if s.Outcome == engine.Changed || !again && s.Outcome.Incomplete() {
			steps = append(steps, s)
		}
	}
	p.rec.steps = steps
}
