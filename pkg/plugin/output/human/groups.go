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

	known    map[memberKey]*Group
	sections map[string]*Section
	order    []*Section
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
		g.known, g.sections = map[memberKey]*Group{}, map[string]*Section{}
	}
	title := g.title(m)
	section := g.sections[title]
	if section == nil {
		section = &Section{Title: title}
		g.sections[title] = section
		g.order = append(g.order, section)
	}
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

// Full reports whether no more should be held: it is time to Take.
func (g *Groups) Full() bool { return len(g.known) >= maxGroups }

// Take hands over the sections and forgets them: namespaces by name, all else in
// the order in which it came.
func (g *Groups) Take() []*Section {
	out := g.order
	if g.By == output.ByNamespace {
		slices.SortFunc(out, func(a, b *Section) int { return cmp.Compare(a.Title, b.Title) })
	}
	g.known, g.sections, g.order = nil, nil, nil
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
