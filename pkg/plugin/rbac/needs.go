package rbac

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/apipath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/choice"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/wildcard"
)

// Run is what permissions are wanted for.
type Run struct {
	Rules []engine.Description
	// Served are the kinds of the cluster that can be listed, each in one version.
	Served []*meta.RESTMapping
	// HasStatus tells of a kind whether its status is written through an endpoint
	// of its own.
	HasStatus func(schema.GroupVersionKind) bool
	// Reads are the kinds of policies, and of inputs of theirs, that are read from
	// the cluster.
	Reads func(schema.GroupKind) bool
	// Namespace is the one that the run keeps to, as with -n; empty for all.
	Namespace string
	// Applies asks for what writing takes, beside what a preview does.
	Applies bool
}

// Need is one permission, and what it is for.
type Need struct {
	Verb, Group, Resource string // Resource with its subresource: "deployments/scale"
	Namespace, Name       string // empty for all
	Path                  string // of a request that is for no resource
	Why                   string
}

// Needs lists the permissions, and what cannot be told about them. The error is
// that of a label selector that no server would accept.
func (r Run) Needs() (needs []Need, notes []string, err error) {
	c := &collector{Run: r}
	if err := c.objects(); err != nil {
		return nil, nil, err
	}
	c.inputs()
	for i := range r.Rules {
		c.rule(&r.Rules[i])
	}
	return c.needs, c.notes, nil
}

type collector struct {
	Run
	needs []Need
	notes []string
}

func (c *collector) add(n Need) {
	if !slices.Contains(c.needs, n) {
		c.needs = append(c.needs, n)
	}
}

func (c *collector) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

func (c *collector) scope() engine.Scope {
	return engine.Scope{Namespace: c.Namespace, ClusterScoped: c.Namespace == ""}
}

// objects are those that the rules are evaluated on: they are listed, kind by
// kind, as the run itself chooses them.
func (c *collector) objects() error {
	var all []engine.Selection
	for i := range c.Rules {
		all = append(all, c.Rules[i].Matches...)
	}
	chosen, err := choice.New(all, c.scope())
	if err != nil {
		return err
	}
	for _, m := range c.Served {
		k, ok := chosen.Kind(m)
		if !ok {
			continue
		}
		need := Need{Verb: "list", Group: m.Resource.Group, Resource: m.Resource.Resource, Name: k.Name(), Why: "objects that the policies match"}
		if namespaced(m) {
			need.Namespace = k.Namespace()
		}
		c.add(need)
	}
	namespaces := Need{Verb: "get", Resource: "namespaces", Why: "labels of namespaces, by which policies choose"}
	if c.Namespace != "" {
		namespaces.Namespace, namespaces.Name = c.Namespace, c.Namespace
		c.add(namespaces)
		return nil
	}
	c.add(namespaces)
	namespaces.Verb = "list"
	c.add(namespaces)
	return nil
}

// inputs are the policies of the cluster, and what they go by.
func (c *collector) inputs() {
	for _, m := range c.Served {
		if gk := m.GroupVersionKind.GroupKind(); gk.Group != "" && c.Reads(gk) {
			c.add(Need{Verb: "list", Group: gk.Group, Resource: m.Resource.Resource, Why: "policies that are installed, and what they go by"})
		}
	}
}

func (c *collector) rule(d *engine.Description) {
	for _, s := range d.Targets {
		c.read(s, "objects that rules change when they see others")
	}
	for _, a := range d.Asks {
		c.ask(d, a)
	}
	if c.Applies {
		c.write(d)
	}
}

// read gets what is one object by its name, and lists anything else.
func (c *collector) read(s engine.Selection, why string) {
	for _, m := range c.kinds(s) {
		need := Need{Verb: "list", Group: m.Resource.Group, Resource: m.Resource.Resource, Why: why}
		if namespaced(m) {
			need.Namespace = fixed(s.Namespace)
		}
		if one(s, m) {
			need.Verb, need.Name = "get", fixed(s.Name)
		}
		if s.Subresource != "" {
			if need.Verb == "list" {
				c.add(need)
				need.Verb = "get"
			}
			need.Resource += "/" + s.Subresource
		}
		c.add(need)
	}
}

// kinds are those that a selection names.
func (c *collector) kinds(s engine.Selection) []*meta.RESTMapping {
	var out []*meta.RESTMapping
	for _, m := range c.Served {
		gvk := m.GroupVersionKind
		if s.Kind != "" && wildcard.Match(s.Group, gvk.Group) && wildcard.Match(s.Kind, gvk.Kind) && s.Names(m.Resource.Resource) {
			out = append(out, m)
		}
	}
	return out
}

func namespaced(m *meta.RESTMapping) bool { return m.Scope.Name() == meta.RESTScopeNameNamespace }

// one tells whether a selection will name a single object when the rule runs.
func one(s engine.Selection, m *meta.RESTMapping) bool {
	plain := func(text string) bool { return text == engine.Computed || text != "" && !wildcard.Has(text) }
	return plain(s.Name) && s.Labels == nil && (plain(s.Namespace) || !namespaced(m))
}

// fixed is a part of a selection that is known before the run; else empty.
func fixed(part string) string {
	if wildcard.Has(part) {
		return ""
	}
	return part
}

func (c *collector) ask(d *engine.Description, a engine.Ask) {
	switch a.Of {
	case engine.AskObjects:
		if a.Objects.Kind == "" {
			c.note("%s reads %s: give the rights to get and list them", d.Rule, a.What)
			return
		}
		c.read(a.Objects, "what rules read beside the object")
	case engine.AskAPI, engine.AskAccess:
		c.path(d, a)
	case engine.AskService, engine.AskRegistry, engine.AskProvider:
		// None of them asks for permissions in the cluster.
	}
}

// path is a request that a policy makes of the API server.
func (c *collector) path(d *engine.Description, a engine.Ask) {
	p, err := apipath.Parse(a.Path)
	if err != nil || p.Refusal(a.Method) != "" {
		return // it is never made
	}
	if p.Group == "authorization.k8s.io" && strings.HasPrefix(p.Resource, "self") {
		return // system:basic-user lets everybody ask about themselves
	}
	if p.Resource == "" {
		c.add(Need{Verb: strings.ToLower(a.Method), Path: p.Clean, Why: "what rules ask the API server"})
		return
	}
	if strings.Contains(p.Group+p.Resource, "*") {
		c.note("%s asks %s: give the right to read that", d.Rule, a.What)
		return
	}
	need := Need{Verb: "list", Group: p.Group, Resource: p.Resource, Namespace: starless(p.Namespace), Why: "what rules ask the API server"}
	switch {
	case a.Method == "POST":
		need.Verb = "create"
	case p.Name != "":
		need.Verb, need.Name = "get", starless(p.Name)
	}
	if p.Subresource != "" {
		need.Resource += "/" + p.Subresource
	}
	c.add(need)
}

func starless(part string) string {
	if strings.Contains(part, "*") {
		return ""
	}
	return part
}

// write reads each object again and patches it. Targets may be anywhere, also
// where the run keeps to a namespace.
func (c *collector) write(d *engine.Description) {
	if d.Existing == engine.ByTrigger {
		c.add(Need{Verb: "create", Resource: "events", Namespace: c.Namespace, Why: "events on objects that a rule changes when it sees others; --events=false does without"})
		for _, s := range d.Targets {
			for _, m := range c.kinds(s) {
				need := Need{Group: m.Resource.Group, Resource: m.Resource.Resource, Name: fixed(s.Name)}
				if namespaced(m) {
					need.Namespace = fixed(s.Namespace)
				}
				c.patch(need, c.parts(d, s, m))
			}
		}
		return
	}
	chosen, err := choice.New(d.Matches, c.scope())
	if err != nil {
		return // objects has told
	}
	for _, m := range c.Served {
		k, ok := chosen.Kind(m)
		if !ok {
			continue
		}
		need := Need{Group: m.Resource.Group, Resource: m.Resource.Resource, Name: fixed(k.Name())}
		if namespaced(m) {
			need.Namespace = fixed(k.Namespace())
		}
		c.patch(need, c.parts(d, engine.Selection{}, m))
	}
}

// patch adds what writing to the parts of an object takes.
func (c *collector) patch(need Need, parts []string) {
	need.Why = "objects that the policies change"
	whole := need.Resource
	for _, part := range parts {
		need.Verb, need.Resource = "get", whole
		if part != "" && part != "status" {
			need.Resource += "/" + part
		}
		c.add(need)
		need.Verb, need.Resource = "patch", strings.TrimSuffix(whole+"/"+part, "/")
		c.add(need)
	}
}

// parts are the endpoints of a kind that a rule writes to: "" for the object
// itself, "status", or the subresource that a target names.
func (c *collector) parts(d *engine.Description, target engine.Selection, m *meta.RESTMapping) []string {
	if target.Subresource != "" {
		return []string{target.Subresource}
	}
	var out []string
	for _, path := range d.Changes {
		part := ""
		if field, _, _ := strings.Cut(path, "."); field == "status" && c.HasStatus(m.GroupVersionKind) {
			part = "status"
		}
		if !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	if len(out) == 0 {
		c.note("%s computes which fields it changes: where these are in the status, patch on the subresource status is needed too", d.Rule)
		return []string{""}
	}
	return out
}
