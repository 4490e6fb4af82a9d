package human

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The bounds of what is held.
const (
	maxGroups   = 4096
	namesListed = 4 // of a group that is not expanded
)

// Member is an object that is to be shown.
type Member struct {
	Subject engine.ObjectKey
	Origin  string // stands behind the name
	// Likeness is equal for objects that are shown in the same words.
	Likeness [32]byte
	// Policy is what output.ByPolicy groups by.
	Policy string
	// Pods restart with the change.
	Pods int
}

// Text is what is shown of a group.
type Text struct {
	Marker string // in front of the heading
	Note   string // at the end of the heading of one object
	Notes  string // and of that of several
	Body   []byte // below it; that of the first object
	// Several is the Body of several objects, without the name of the first one; nil if that is the same.
	Several []byte
	// Warnings are those of one object, and Alike those that several share.
	Warnings, Alike []byte
}

// Group is one or more objects of a kind that are shown in the same words.
type Group struct {
	Text
	First      engine.ObjectKey
	Count      int
	Pods       int      // of all of them that restart
	Names      []string // the first few, or all when the groups are expanded
	namespaces Counter  // empty for objects without a namespace
	clusters   Counter  // empty of a run on one
}

// Groups collects groups. The zero value groups by output.ByPatch.
type Groups struct {
	By     output.GroupBy
	Expand bool // remember the names of all objects

	known map[memberKey]*Group
	order []*Section
}

type memberKey struct {
	section  string
	likeness [32]byte
}

// Section is the groups under one heading. Its title is empty unless groups are
// put together by policy or namespace.
type Section struct {
	Title  string
	Groups []*Group
}

// Join adds an object to the group of those like it; false where it is the first.
func (g *Groups) Join(m Member) bool {
	group := g.known[memberKey{g.title(m), m.Likeness}]
	if group == nil {
		return false
	}
	g.count(group, m)
	return true
}

// Found begins a group with its first object.
func (g *Groups) Found(m Member, text Text) {
	if g.known == nil {
		g.known = map[memberKey]*Group{}
	}
	title := g.title(m)
	at := slices.IndexFunc(g.order, func(s *Section) bool { return s.Title == title })
	if at < 0 {
		at = len(g.order)
		g.order = append(g.order, &Section{Title: title})
	}
	section := g.order[at]
	for _, t := range []*[]byte{&text.Body, &text.Several, &text.Warnings, &text.Alike} {
		*t = bytes.Clone(*t) // without the room in which it was written
	}
	group := &Group{Text: text, First: m.Subject}
	section.Groups = append(section.Groups, group)
	g.known[memberKey{title, m.Likeness}] = group
	g.count(group, m)
}

func (g *Groups) count(group *Group, m Member) {
	group.Count++
	group.Pods += m.Pods
	if m.Subject.Namespace != "" {
		group.namespaces.Add(m.Subject.Namespace)
	}
	if m.Subject.Cluster != "" {
		group.clusters.Add(m.Subject.Cluster)
	}
	if g.Expand || len(group.Names) < namesListed {
		group.Names = append(group.Names, shortName(m.Subject)+m.Origin)
	}
}

// title is the section that an object belongs to.
func (g *Groups) title(m Member) string {
	switch g.By {
	case output.ByPolicy:
		return m.Policy
	case output.ByNamespace:
		return cmp.Or(m.Subject.Namespace, "(objects without a namespace)")
	case output.ByCluster:
		return m.Subject.Cluster
	case output.ByPatch, output.ByObject:
	}
	return ""
}

// Keep forgets the groups that are not to be kept. Objects like theirs begin new ones.
func (g *Groups) Keep(keep func(*Group) bool) {
	kept := map[*Group]bool{}
	for _, section := range g.order {
		section.Groups = slices.DeleteFunc(section.Groups, func(group *Group) bool {
			kept[group] = keep(group)
			return !kept[group]
		})
	}
	maps.DeleteFunc(g.known, func(_ memberKey, group *Group) bool { return !kept[group] })
}

// Take hands over the sections and forgets them: namespaces by name, all else in
// the order in which it came.
func (g *Groups) Take() []*Section {
	out := g.order
	if g.By == output.ByNamespace {
		slices.SortFunc(out, func(a, b *Section) int { return cmp.Compare(a.Title, b.Title) })
	}
	g.known, g.order = nil, nil
	return out
}

// Counter counts texts. The zero value is empty and ready for use.
type Counter struct {
	counts map[string]int
	total  int
}

// Add counts a text once more.
func (t *Counter) Add(text string) {
	t.total++
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[text]++
}

// All lists the texts, the most frequent first. Those that are as frequent come in alphabetical order.
func (t *Counter) All() []wording.Count {
	var all []wording.Count
	for text, n := range t.counts {
		all = append(all, wording.Count{N: n, Text: text})
	}
	slices.SortFunc(all, func(a, b wording.Count) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Text, b.Text))
	})
	return all
}

// Top lists the most frequent texts, at most so many, and how many additions it leaves out.
func (t *Counter) Top(most int) (top []wording.Count, rest int) {
	top = t.All()
	top = top[:min(most, len(top))]
	rest = t.total
	for _, c := range top {
		rest -= c.N
	}
	return top, rest
}

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
