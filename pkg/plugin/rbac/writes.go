package rbac

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply/request"
)

// write reads each object again and patches it.
func (c *collector) write(d *engine.Description) {
	if d.Existing == engine.ByTrigger {
		if c.Purpose == Apply {
			c.add(Need{Verb: "create", Resource: "events", Namespace: c.namespace, Why: "events on objects that rules change when others trigger them; not needed with --events=false"})
		}
		for _, target := range d.Targets {
			for _, s := range c.targets(target) {
				c.writeTargets(d, s)
			}
		}
		return
	}
	_ = c.each(d.Matches, *c.scope(), func(m *meta.RESTMapping, k *engine.KindFilter) { // objects has returned the error
		need := c.need(m, k)
		for _, need.Name = range names(k) {
			c.patch(need, c.parts(d, engine.Selection{}, m))
		}
		wild := slices.ContainsFunc(d.Matches, func(s engine.Selection) bool {
			return selector.HasWildcard(s.Kind) && (s.Resource == "" || selector.HasWildcard(s.Resource))
		})
		if text := m.Resource.GroupResource().String(); wild && slices.Contains(rulingGroups, m.Resource.Group) && !slices.Contains(c.ruling, text) {
			c.ruling = append(c.ruling, text)
		}
	})
}

// rulingGroups have kinds that rule over others, which the author of a wildcard may not have thought of.
var rulingGroups = []string{"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"} //nolint:gochecknoglobals // an immutable table

// writeTargets patches what a rule changes in place of what it matches.
func (c *collector) writeTargets(d *engine.Description, s engine.Selection) {
	for _, m := range c.kinds(s) {
		c.patch(about(m, s), c.parts(d, s, m))
	}
}

// noteWildcards adds a note on the kinds that rule over others and that a wildcard covers.
func (c *collector) noteWildcards() {
	if len(c.ruling) > 0 {
		c.note("policies match kinds by a wildcard, so that the roles allow patching %s, which controls what others may do; "+
			"name the kinds in the policies, leave rules out with --skip, or name types", strings.Join(c.ruling, ", "))
	}
}

// patch adds what writing to the parts of an object takes.
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

// parts are the endpoints of a kind that a rule writes to: "" for the object
// itself, "status", or the subresource that a target names.
func (c *collector) parts(d *engine.Description, target engine.Selection, m *meta.RESTMapping) []string {
	if target.Subresource != "" {
		return []string{target.Subresource}
	}
	var out []string
	for _, path := range d.Changes {
		part := ""
		if field, _, _ := strings.Cut(path, "."); field == request.StatusSubresource && c.HasStatus(m.GroupVersionKind) {
			part = request.StatusSubresource
		}
		if !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	if len(out) == 0 {
		c.note("%s computes which fields it changes: if these are in the status, patch on the subresource status is needed too", d.Rule)
		return []string{""}
	}
	return out
}
