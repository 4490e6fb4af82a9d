package human

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
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
	namespaces map[string]int
	clusters   map[string]int // nil of a run on one
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
	group := &Group{Text: text, First: m.Subject, namespaces: map[string]int{}}
	section.Groups = append(section.Groups, group)
	g.known[memberKey{title, m.Likeness}] = group
	g.count(group, m)
}

func (g *Groups) count(group *Group, m Member) {
	group.Count++
	group.Pods += m.Pods
	group.namespaces[m.Subject.Namespace]++
	if m.Subject.Cluster != "" {
		if group.clusters == nil {
			group.clusters = map[string]int{}
		}
		group.clusters[m.Subject.Cluster]++
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

// Len is how many groups there are.
func (g *Groups) Len() int { return len(g.known) }

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

// NamespaceCount is a namespace or a cluster, and how many objects of a group are in it.
type NamespaceCount struct {
	Name string
	N    int
}

// Namespaces lists the namespaces that hold the most objects first. It is empty
// for objects without a namespace.
func (g *Group) Namespaces() []NamespaceCount { return sorted(g.namespaces) }

// Clusters lists the clusters that hold the most objects first. It is empty for a run on one.
func (g *Group) Clusters() []NamespaceCount { return sorted(g.clusters) }

func sorted(counts map[string]int) []NamespaceCount {
	var out []NamespaceCount
	for name, n := range counts {
		if name != "" {
			out = append(out, NamespaceCount{name, n})
		}
	}
	slices.SortFunc(out, func(a, b NamespaceCount) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name))
	})
	return out
}
