package permission

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/request"
)

// write adds reading each object again and patching it.
func (c *collector) write(d *engine.Description) {
	if d.Existing == engine.ByTrigger {
		if c.Purpose == Apply {
			c.add(Need{Verb: "create", Resource: "events", Namespace: c.namespace, Why: "events on objects that rules change when others trigger them; not needed with --events=false"})
		}
		for _, target := range d.Targets {
			for _, s := range c.targets(target) {
				for _, m := range c.kinds(s) {
					c.patch(about(m, s), c.parts(d, s, m))
				}
			}
		}
		return
	}
	_ = c.eachKind(d.Matches, *c.scope(), func(m *meta.RESTMapping, k *engine.KindFilter) {
		// objects has returned its error
		need := c.need(m, k)
		for _, need.Name = range exactNames(k) {
			c.patch(need, c.parts(d, engine.Selection{}, m))
		}
		wild := slices.ContainsFunc(d.Matches, func(s engine.Selection) bool {
			return selector.HasWildcard(s.Kind) && (s.Resource == "" || selector.HasWildcard(s.Resource))
		})
		if text := m.Resource.GroupResource().String(); wild && slices.Contains(rulingGroups, m.Resource.Group) &&
			!slices.Contains(c.ruling, text) {
			c.ruling = append(c.ruling, text)
		}
	})
}

// rulingGroups have kinds that control others, which the author of a wildcard may not have thought of.
var rulingGroups = []string{"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"} //nolint:gochecknoglobals // an immutable table

// patch adds writing to the parts of an object.
func (c *collector) patch(need Need, parts []string) {
	need.Why = "objects that the policies change"
	whole := need.Resource
	for _, part := range parts {
		need.Verb, need.Resource = "get", whole
		if part != "" && part != request.StatusSubresource {
			need.Resource += "/" + part
		}
		c.add(need)
		need.Verb, need.Resource = "patch", strings.TrimSuffix(whole+"/"+part, "/")
		c.add(need)
	}
}

// parts returns the endpoints of a kind that a rule writes to: "" for the object itself, "status", or the
// subresource of a target.
func (c *collector) parts(d *engine.Description, target engine.Selection, m *meta.RESTMapping) []string {
	if target.Subresource != "" {
		return []string{target.Subresource}
	}
	var out []string
	for _, path := range d.Changes {
		part := ""
		if field, _, _ := strings.Cut(path, "."); field == request.StatusSubresource &&
			c.HasStatus(m.GroupVersionKind) {
			part = request.StatusSubresource
		}
		out = append(out, part)
	}
	if len(out) == 0 {
		c.note("%s computes which fields it changes: if these are in the status, patch on the subresource status is needed too", d.Rule)
		return []string{""}
	}
	return engine.Distinct(out)
}

// needRead adds getting a single object by name, or listing.
func (c *collector) needRead(s engine.Selection, why string) {
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

// kinds returns the kinds of a selection.
func (c *collector) kinds(s engine.Selection) []*meta.RESTMapping {
	var out []*meta.RESTMapping
	for _, m := range c.Served {
		gvk := m.GroupVersionKind
		if s.Kind != "" && selector.MatchWildcard(s.Group, gvk.Group) && selector.MatchWildcard(s.Kind, gvk.Kind) &&
			s.MatchesResource(m.Resource.Resource) {
			out = append(out, m)
		}
	}
	return out
}

func namespaced(m *meta.RESTMapping) bool { return m.Scope.Name() == meta.RESTScopeNameNamespace }

// about returns a need for the objects of a selection of a kind.
func about(m *meta.RESTMapping, s engine.Selection) Need {
	out := Need{Group: m.Resource.Group, Resource: m.Resource.Resource, Name: fixed(s.Name)}
	if namespaced(m) {
		out.Namespace = fixed(s.Namespace)
	}
	return out
}

// one reports whether a selection names a single object when the rule runs.
func one(s engine.Selection, m *meta.RESTMapping) bool {
	plain := func(text string) bool {
		return text == engine.Computed || text != "" && !selector.HasWildcard(text)
	}
	return plain(s.Name) && (plain(s.Namespace) || s.Labels == nil && !namespaced(m))
}

// fixed returns a part of a selection if it is known before the run, else "".
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
		c.needRead(a.Objects, "other objects that rules read")
	case engine.AskAPI, engine.AskAccess:
		c.path(d, a)
	case engine.AskService, engine.AskRegistry, engine.AskProvider:
		// no permissions in the cluster
	}
}

// path adds a request of a policy to the API server.
func (c *collector) path(d *engine.Description, a engine.Ask) {
	p, err := engine.ParseAPIPath(a.Path)
	if err != nil || p.Refusal(a.Method) != "" {
		return // never sent
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
	need := Need{
		Verb: "list", Group: p.Group, Resource: p.Resource, Namespace: fixed(p.Namespace),
		Why: "requests of rules to the API server",
	}
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
