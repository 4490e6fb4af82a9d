package rbac

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// read gets what is one object by its name, and lists anything else.
func (c *collector) read(s engine.Selection, why string) {
	for _, m := range c.kinds(s) {
		need := about(m, s)
		need.Verb, need.Why = "get", why
		if !one(s, m) {
			need.Verb, need.Name = "list", ""
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
		if s.Kind != "" && selector.MatchWildcard(s.Group, gvk.Group) && selector.MatchWildcard(s.Kind, gvk.Kind) && s.MatchesResource(m.Resource.Resource) {
			out = append(out, m)
		}
	}
	return out
}

func namespaced(m *meta.RESTMapping) bool { return m.Scope.Name() == meta.RESTScopeNameNamespace }

// about is a need of what a selection names of a kind.
func about(m *meta.RESTMapping, s engine.Selection) Need {
	out := Need{Group: m.Resource.Group, Resource: m.Resource.Resource, Name: fixed(s.Name)}
	if namespaced(m) {
		out.Namespace = fixed(s.Namespace)
	}
	return out
}

// one reports whether a selection will name a single object when the rule runs.
func one(s engine.Selection, m *meta.RESTMapping) bool {
	plain := func(text string) bool { return text == engine.Computed || text != "" && !selector.HasWildcard(text) }
	return plain(s.Name) && (plain(s.Namespace) || s.Labels == nil && !namespaced(m))
}

// fixed is a part of a selection that is known before the run; else empty.
func fixed(part string) string {
	if selector.HasWildcard(part) {
		return ""
	}
	return part
}

func (c *collector) ask(d *engine.Description, a engine.Ask) {
	switch a.Of {
	case engine.AskObjects:
		if a.Objects.Kind == "" {
			c.note("%s reads %s: add the permission to get and list them", d.Rule, a.What)
			return
		}
		c.read(a.Objects, "other objects that rules read")
	case engine.AskAPI, engine.AskAccess:
		c.path(d, a)
	case engine.AskService, engine.AskRegistry, engine.AskProvider:
		// None of them asks for permissions in the cluster.
	}
}

// path is a request that a policy makes of the API server.
func (c *collector) path(d *engine.Description, a engine.Ask) {
	p, err := engine.ParseAPIPath(a.Path)
	if err != nil || p.Refusal(a.Method) != "" {
		return // it is never made
	}
	if p.Group == "authorization.k8s.io" && strings.HasPrefix(p.Resource, "self") {
		return // system:basic-user lets everybody ask about themselves
	}
	if p.Resource == "" {
		c.add(Need{Verb: strings.ToLower(a.Method), Path: p.Clean, Why: "requests of rules to the API server"})
		return
	}
	if strings.Contains(p.Group+p.Resource, "*") {
		c.note("%s requests %s: add the permission to read that", d.Rule, a.What)
		return
	}
	need := Need{Verb: "list", Group: p.Group, Resource: p.Resource, Namespace: fixed(p.Namespace), Why: "requests of rules to the API server"}
	switch {
	case a.Method == "POST":
		need.Verb = "create"
	case p.Name != "":
		need.Verb, need.Name = "get", fixed(p.Name)
	}
	if p.Subresource != "" {
		need.Resource += "/" + p.Subresource
	}
	c.add(need)
}
