package human

import (
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// part is a change as the formats for people show it: whole, or what one policy
// does to the object.
type part struct {
	engine.Change
	policy string // whose part it is; empty where it is the whole
	of     *whole // what it is a part of; nil where it is the whole
}

// whole is a change of which parts are shown.
type whole struct {
	*engine.Change
	by []string // the policies that it has fields of
}

// others are the differences of all policies; none where the part is the whole.
func (p *part) others() []engine.FieldChange {
	if p.of == nil {
		return nil
	}
	return p.of.Fields
}

// event prints the parts of a change, or the summary.
func (h *base) event(s output.Shown, print func(*part) error) error {
	switch e := s.Event().(type) {
	case output.Evaluated:
		return h.each(e.Change, print)
	case output.Fleet:
		return h.fleet(e)
	case output.Summary:
		return h.summarize(e.Summary)
	}
	return nil
}

// each prints the parts of a change that change something or need a remark.
func (h *base) each(c *engine.Change, print func(*part) error) error {
	h.begin(c)
	for _, p := range h.parted(c) {
		if !output.Listed(&p.Change, h.Explain) {
			continue
		}
		if err := print(p); err != nil {
			return err
		}
	}
	return nil
}

// parted is a change policy by policy, in the order in which they ran, where that
// is asked for.
func (h *base) parted(c *engine.Change) []*part {
	if h.GroupBy != output.ByPolicy {
		return []*part{{Change: *c}}
	}
	parts := byPolicy(c)
	if len(parts) == 0 {
		return []*part{{Change: *c, policy: "no policy"}}
	}
	for i := range c.Impacts {
		for _, p := range meant(parts, &c.Impacts[i]) {
			p.Impacts = append(p.Impacts, c.Impacts[i])
		}
	}
	return parts
}

// byPolicy gives each policy its steps and fields. A field belongs to the policy that
// wrote it last.
func byPolicy(c *engine.Change) []*part {
	var parts []*part
	known, all := map[string]*part{}, &whole{Change: c}
	of := func(r engine.RuleRef) *part {
		policy := wording.Policy(r)
		p := known[policy]
		if p == nil {
			p = &part{Change: engine.Change{Subject: c.Subject, Target: c.Target, Before: c.Before, After: c.After}, policy: policy, of: all}
			known[policy] = p
			parts = append(parts, p)
		}
		return p
	}
	for i := range c.Steps {
		p := of(c.Steps[i].Rule)
		p.Steps = append(p.Steps, c.Steps[i])
	}
	for i := range c.Fields {
		p := of(c.Fields[i].Rule)
		p.Fields = append(p.Fields, c.Fields[i])
	}
	for _, p := range parts {
		if p.Changed() {
			all.by = append(all.by, p.policy)
		}
	}
	return parts
}

// meant are the parts that an impact comes from: those with the fields that it is
// about, or else all that change or write something.
func meant(parts []*part, impact *engine.Impact) []*part {
	for _, concerned := range []func(*part) bool{
		func(p *part) bool {
			return len(impact.Fields) > 0 && slices.ContainsFunc(p.Fields, func(f engine.FieldChange) bool { return impact.Concerns(f.Path) })
		},
		func(p *part) bool { return p.Changed() },
		func(p *part) bool { return p.Writes() },
	} {
		if found := slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return !concerned(p) }); len(found) > 0 {
			return found
		}
	}
	return parts[:1]
}

// byOthers says which other policies change the object, and "" where none does.
func (p *part) byOthers() string {
	if p.of == nil {
		return ""
	}
	words, n := "changed by ", len(p.of.by)
	if p.Changed() {
		words, n = "also changed by ", n-1
	}
	if n == 0 {
		return ""
	}
	const first = 10 // more than are named
	names := slices.DeleteFunc(slices.Clone(p.of.by[:min(len(p.of.by), first)]), func(policy string) bool { return policy == p.policy })
	return words + engine.FewOf(names, n)
}
