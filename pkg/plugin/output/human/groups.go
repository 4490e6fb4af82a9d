package human

import (
	"cmp"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// The limits of what is held in memory.
const (
	maxGroups   = 4096
	namesListed = 4 // of a group that is not expanded
)

// shown is how a group is shown.
type shown struct {
	marker string // in front of the heading
	note   string // at the end of the heading of one object
	notes  string // at the end of the heading of several
	// body follows the heading of one object; several that of several, without the name of the first.
	body, several []byte
	diff          []byte // below that
}

// group is one or more objects of a kind that are shown in the same words.
type group struct {
	shown
	// heading of the group; empty unless grouped by policy, namespace or cluster
	section    string
	first      engine.ObjectKey // of the objects
	impacts    []engine.Impact  // of the first
	count      int
	pods       int      // that restart, of all objects
	names      []string // the first few, or all if the groups are expanded
	namespaces Counter  // empty for objects without a namespace
	clusters   Counter  // empty for a run on one
	fields     Varieties
}

type groupKey struct {
	section  string
	likeness [32]byte // equal for objects that are shown in the same words
}

// add counts an object, whose name is followed by the origin.
func (g *group) add(c *engine.Change, origin string, expand bool) {
	g.count++
	if !c.Managed() { // otherwise they do not restart
		for i := range c.Impacts {
			g.pods += c.Impacts[i].Pods
		}
	}
	if c.Subject.Namespace != "" {
		g.namespaces.Add(c.Subject.Namespace)
	}
	if c.Subject.Cluster != "" {
		g.clusters.Add(c.Subject.Cluster)
	}
	if expand || len(g.names) < namesListed {
		g.names = append(g.names, shortName(c.Subject)+origin)
	}
}

// String returns the heading: the object, or how many there are.
func (g *group) String() string {
	if g.count == 1 {
		return g.marker + " " + g.first.String() + g.note
	}
	objects := wording.Plural(g.count, "object")
	if g.first.Of != (engine.Maker{}) {
		objects += " to be created"
	}
	return g.marker + " " + wording.Kind(g.first) + ": " + objects +
		placed(g.namespaces.All(), " in ", "namespaces") + placed(g.clusters.All(), " on ", "clusters") + g.notes
}

// section returns the heading above an object.
func (h *base) section(c *part) string {
	switch h.GroupBy {
	case output.ByPolicy:
		return c.policy
	case output.ByNamespace:
		return cmp.Or(c.Subject.Namespace, "(objects without a namespace)")
	case output.ByCluster:
		return c.Subject.Cluster
	case output.ByPatch, output.ByObject:
	}
	return ""
}

// Counter counts strings. The zero value is empty and ready for use.
type Counter struct {
	counts map[string]int
	total  int
}

// Add counts a string once more.
func (t *Counter) Add(text string) { t.add(text, 1) }

func (t *Counter) add(text string, times int) {
	t.total += times
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[text] += times
}

// All returns the strings, the most frequent first, equally frequent ones in alphabetical order.
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

// Top returns the most frequent strings, at most so many, and how many additions it leaves out.
func (t *Counter) Top(most int) (top []wording.Count, rest int) {
	top = t.All()
	top = top[:min(most, len(top))]
	rest = t.total
	for _, c := range top {
		rest -= c.N
	}
	return top, rest
}

// part is a change as the formats for people show it: whole, or what one policy does to the object.
type part struct {
	engine.Change
	policy string               // of the part; empty, as are the others, for the whole
	others []engine.FieldChange // the differences of all policies
	by     []string             // the policies that wrote fields of the change
}

// event prints the parts of a change that change something or need a remark, or the summary.
func (h *base) event(s output.Shown, print func(*part) error) error {
	switch e := s.Event().(type) {
	case output.Evaluated:
		h.begin(e.Change)
		for _, p := range h.parted(e.Change) {
			if !output.Listed(&p.Change, h.Explain) {
				continue
			}
			if err := print(p); err != nil {
				return err
			}
		}
	case output.Fleet:
		return h.fleet(e)
	case output.Summary:
		return h.summarize(e.Summary)
	}
	return nil
}

// parted returns a change policy by policy, in the order in which they ran, if grouped by policy.
func (h *base) parted(c *engine.Change) []*part {
	if h.GroupBy != output.ByPolicy {
		return []*part{{Change: *c}}
	}
	parts := byPolicy(c)
	if len(parts) == 0 {
		return []*part{{Change: *c, policy: "no policy"}}
	}
	for i := range c.Impacts {
		for _, p := range concernedParts(parts, &c.Impacts[i]) {
			p.Impacts = append(p.Impacts, c.Impacts[i])
		}
	}
	return parts
}

// byPolicy returns the steps and fields of each policy. A field belongs to its last writer.
func byPolicy(c *engine.Change) []*part {
	var parts []*part
	known := map[string]*part{}
	of := func(r engine.RuleRef) *part {
		policy := wording.Policy(r)
		p := known[policy]
		if p == nil {
			p = &part{
				Change: engine.Change{Subject: c.Subject, Target: c.Target, Before: c.Before, After: c.After},
				policy: policy, others: c.Fields,
			}
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
		p := of(c.Fields[i].Rule())
		p.Fields = append(p.Fields, c.Fields[i])
	}
	var by []string
	for _, p := range parts {
		if p.Changed() {
			by = append(by, p.policy)
		}
	}
	for _, p := range parts {
		p.by = by
	}
	return parts
}

// concernedParts returns the parts that an impact comes from: those with its fields, or else those that
// change or write something.
func concernedParts(parts []*part, impact *engine.Impact) []*part {
	for _, concerned := range []func(*part) bool{
		func(p *part) bool {
			return len(impact.Fields) > 0 &&
				slices.ContainsFunc(p.Fields, func(f engine.FieldChange) bool { return impact.Concerns(f.Path) })
		},
		func(p *part) bool { return p.Changed() },
		func(p *part) bool { return p.Writes() },
	} {
		if found := slices.DeleteFunc(slices.Clone(parts),
			func(p *part) bool { return !concerned(p) }); len(found) > 0 {
			return found
		}
	}
	return parts[:1]
}

// byOthers says which other policies change the object, if any.
func (p *part) byOthers() string {
	words, n := "changed by ", len(p.by)
	if p.Changed() {
		words, n = "also changed by ", n-1
	}
	if n < 1 { // as for the whole
		return ""
	}
	const first = 10 // more than are named
	names := slices.DeleteFunc(slices.Clone(p.by[:min(len(p.by), first)]),
		func(policy string) bool { return policy == p.policy })
	return words + engine.FewOf(names, n)
}
