package evaluation

import (
	"cmp"
	"math"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// maxAdmissions bounds how often an object goes through its own rules because effects have changed it.
const maxAdmissions = 5

// settle shows an object that effects have changed to its own rules, like admission of the write, then their
// result to the effects, including effects that only the new labels select, until nothing changes. Rules that
// do not settle are not idempotent: the object stays as it was.
func (p *pass) settle(scoped bool) error {
	own := scoped && covers(p.chains.own, &p.target)
	if !own && !p.selectedLate() {
		return nil
	}
	first, recorded := p.target, *p.rec
	for range maxAdmissions {
		last, rec := p.target, *p.rec
		if own {
			if err := p.chain(); err != nil {
				return err
			}
		}
		if p.target.Object != last.Object || p.selectedLate() {
			p.unselected = nil
			if err := p.act(0, math.MaxInt); err != nil {
				return err
			}
		}
		denied := p.denied(len(rec.steps))
		if !denied && same(p.target.Object, last.Object) {
			p.target, *p.rec = last, rec
			return nil
		}
		if p.keepNews(len(rec.steps)); denied {
			return nil
		}
	}
	p.target, *p.rec = first, recorded
	return nil
}

// relabelling returns the objects to which their own rules may give the labels by which rules select
// triggers: they must be read as triggers.
func (c *chains) relabelling() []engine.Selection {
	var out []engine.Selection
	for _, s := range c.byLabels {
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

// keepNews drops the steps from the given one on that were reported before it.
func (p *pass) keepNews(from int) {
	told := p.rec.steps[:from]
	p.rec.steps = append(told, slices.DeleteFunc(p.rec.steps[from:], func(s engine.Step) bool {
		again := func(t engine.Step) bool {
			return t.Rule == s.Rule && t.Trigger() == s.Trigger() && t.Outcome == s.Outcome
		}
		return s.Outcome != engine.Changed && (!s.Outcome.Incomplete() || slices.ContainsFunc(told, again))
	})...)
}
