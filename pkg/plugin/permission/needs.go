// Package permission computes the permissions of a run, as the smallest Roles and ClusterRole, and the
// missing permission of a refused request.
package permission

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Run describes the run that needs permissions.
type Run struct {
	Rules []engine.Description
	// Served are the listable kinds of the cluster, each in one version.
	Served []*meta.RESTMapping
	// HasStatus reports whether a kind has a status subresource.
	HasStatus func(schema.GroupVersionKind) bool
	// Reads reports whether objects of a kind are read from the cluster as policies or their inputs.
	Reads func(schema.GroupKind) bool
	// Namespaces of the run, as with -n or --namespaces; empty for all.
	Namespaces []string
	// Only has the types and names that the user typed (engine.Scope).
	Only []engine.ObjectKey
	// Purpose of the run.
	Purpose Purpose
	// Reports are the kinds of reports that a preview keeps in the cluster: on namespaced objects, and on
	// others.
	Reports []schema.GroupKind
	// DryRuns is set if a preview sends the changes as dry runs.
	DryRuns bool
	// Watches is set if the run follows changes.
	Watches bool
	// Fixed is set for exactly this run, such as a Job's, and not also for runs on some names only.
	Fixed bool
}

// Purpose is what a run does, in the user's words.
type Purpose string

// The purposes. Apply needs what Preview does, and more.
const (
	Preview Purpose = "preview"
	Explain Purpose = "explain" // of the objects in Only, which no policy need match
	Apply   Purpose = "apply"
)

// Need is one permission, and why it is needed.
type Need struct {
	Verb, Group, Resource string // Resource with its subresource: "deployments/scale"
	Namespace, Name       string // empty for all
	Path                  string // of a non-resource request
	Why                   string
}

// Needs returns the permissions, and notes for their giver. It fails for a label selector that no server
// would accept.
func (r Run) Needs() (needs []Need, notes []string, err error) {
	c := &collector{Run: r, known: map[Need]bool{}}
	each := r.Namespaces
	if len(each) == 0 {
		each = []string{""}
	}
	for _, c.namespace = range each {
		if err := c.objects(); err != nil {
			return nil, nil, err
		}
		c.namespaces()
		c.inputs()
		for i := range r.Rules {
			c.rule(&r.Rules[i])
		}
		c.reports()
	}
	if len(c.ruling) > 0 {
		c.note("policies match kinds by a wildcard, so that the roles allow patching %s, which controls what others may do; "+
			"name the kinds in the policies, leave rules out with --skip, or name types", strings.Join(c.ruling, ", "))
	}
	return slices.DeleteFunc(slices.Clone(c.needs), c.implied), c.notes, nil
}

// reports adds writing reports, and deleting old ones.
func (c *collector) reports() {
	for _, gk := range c.Reports {
		m, err := c.RESTMapping(gk)
		if err != nil || c.namespace != "" && !namespaced(m) {
			continue
		}
		need := Need{
			Group: m.Resource.Group, Resource: m.Resource.Resource, Namespace: c.namespace,
			Why: "reports on the objects",
		}
		for _, need.Verb = range []string{"create", "delete", "list", "patch"} {
			c.add(need)
		}
	}
}

// collector collects the needs of a run, namespace by namespace.
type collector struct {
	Run
	namespace string // empty for all
	needs     []Need
	known     map[Need]bool // the needs
	notes     []string
	ruling    []string // resources that control others, which a wildcard covers
}

func (c *collector) add(n Need) {
	if !c.known[n] {
		c.known[n] = true
		c.needs = append(c.needs, n)
	}
}

// implied reports whether a permission in a namespace is part of one in all namespaces.
func (c *collector) implied(n Need) bool {
	return n.Namespace != "" && slices.ContainsFunc(c.needs, func(all Need) bool {
		return all.Namespace == "" && all.Verb == n.Verb && all.Group == n.Group && all.Resource == n.Resource &&
			all.Path == n.Path && (all.Name == "" || all.Name == n.Name)
	})
}

func (c *collector) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// scope returns the scope of the run in the namespace.
func (c *collector) scope() *engine.Scope {
	scope := &engine.Scope{ClusterScoped: c.namespace == "", Only: c.Only}
	if c.namespace != "" {
		scope.Namespaces = []string{c.namespace}
	}
	return scope
}

// objects adds reading the objects that the rules are evaluated on, kind by kind, as the run chooses them.
func (c *collector) objects() error {
	all := c.matched(func(*engine.Description) bool { return true })
	var named []engine.Selection
	if c.Purpose == Explain {
		for _, k := range c.Only {
			named = append(named, c.targets(engine.Selection{Group: k.Group, Kind: k.Kind, Name: k.Name})...)
		}
	}
	if err := c.addChosen(append(all, named...)); err != nil {
		return err
	}
	triggers := c.matched(c.propagates)
	if len(triggers) == 0 || c.scope().Whole() {
		return nil
	}
	return c.triggers(append(triggers, named...))
}

// triggers adds listing triggers, wherever the rules say.
func (c *collector) triggers(all []engine.Selection) error {
	return c.eachKind(all, everywhere, func(m *meta.RESTMapping, k *engine.KindFilter) {
		need := c.need(m, k)
		need.Verb, need.Name, need.Why = "list", fixed(k.Name()), "objects that may trigger rules that change others"
		c.add(need)
		c.watch(need)
		if namespaced(m) {
			c.add(Need{Verb: "list", Resource: "namespaces", Why: "labels of the namespaces of such objects"})
		}
	})
}

var everywhere = engine.Scope{ClusterScoped: true} //nolint:gochecknoglobals // an immutable value

// eachKind calls found with the kinds of selections in a scope. The error is about a label selector.
func (c *collector) eachKind(all []engine.Selection, scope engine.Scope,
	found func(*meta.RESTMapping, *engine.KindFilter),
) error {
	chosen, err := engine.NewObjectFilter(all, scope)
	if err != nil {
		return err
	}
	for _, m := range c.Served {
		if k, ok := chosen.ForKind(m); ok {
			found(m, k)
		}
	}
	return nil
}

// propagates reports whether a rule may change objects of the run other than those it matches.
func (c *collector) propagates(d *engine.Description) bool {
	return d.Existing == engine.ByTrigger &&
		(c.Purpose == Explain || slices.ContainsFunc(d.Targets, func(s engine.Selection) bool {
			return len(c.targets(s)) > 0
		}))
}

// targets returns the part of a rule's targets in the scope of the run.
func (c *collector) targets(s engine.Selection) []engine.Selection { return c.scope().Narrow(s, c) }

// RESTMapping implements engine.Mapper.
func (c *collector) RESTMapping(gk schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	for _, m := range c.Served {
		if m.GroupVersionKind.GroupKind() == gk {
			return m, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: gk}
}

// matched returns what the wanted rules match.
func (c *collector) matched(wanted func(*engine.Description) bool) []engine.Selection {
	var out []engine.Selection
	for i := range c.Rules {
		if wanted(&c.Rules[i]) {
			out = append(out, c.Rules[i].Matches...)
		}
	}
	return out
}

// addChosen adds reading the objects of selections in the scope. If the user has typed nothing and the run
// is not Fixed, the permissions are enough for a run with types or names of changed objects, which gets
// single objects. Objects that are only triggers are listed.
func (c *collector) addChosen(all []engine.Selection) error {
	own := c.matched(func(d *engine.Description) bool { return d.Existing != engine.ByTrigger })
	changed, err := engine.NewObjectFilter(own, *c.scope())
	if err != nil {
		return err
	}
	return c.eachKind(all, *c.scope(), func(m *meta.RESTMapping, k *engine.KindFilter) {
		_, changes := changed.ForKind(m)
		need := c.need(m, k)
		need.Why = "objects that the policies match"
		switch {
		case c.Purpose == Explain:
			need.Why = "objects to explain"
		case len(k.Keys()) > 0:
			need.Why = "objects that were named"
		}
		for _, need.Name = range exactNames(k) {
			lists := len(k.Keys()) == 0 || len(c.Namespaces) != 1 && namespaced(m)
			for _, verb := range []string{"get", "list"} {
				if need.Verb = verb; verb == "list" && !lists || verb == "get" && len(k.Keys()) == 0 &&
					(c.Fixed || len(c.Only) > 0 || !changes) {
					continue
				}
				c.add(need)
			}
			c.watch(need)
		}
	})
}

// watch adds following objects.
func (c *collector) watch(n Need) {
	if !c.Watches {
		return
	}
	for _, n.Verb = range []string{"list", "watch"} {
		c.add(n)
	}
}

// watchParams adds following the parameters of a policy.
func (c *collector) watchParams(s engine.Selection) {
	for _, m := range c.kinds(s) {
		n := about(m, s)
		if n.Why = "parameters of policies"; namespaced(m) && s.Namespace == engine.Computed {
			n.Namespace = c.namespace // the object's
		}
		c.watch(n)
	}
}

// need returns a need for the chosen objects of a kind, without names.
func (c *collector) need(m *meta.RESTMapping, k *engine.KindFilter) Need {
	n := Need{Group: m.Resource.Group, Resource: m.Resource.Resource}
	if at := k.Namespaces(); namespaced(m) && len(at) == 1 {
		n.Namespace = at[0]
	}
	return n
}

// exactNames returns the names of the chosen objects; one empty name for any.
func exactNames(k *engine.KindFilter) []string {
	typed := k.Keys()
	if len(typed) == 0 {
		return []string{fixed(k.Name())}
	}
	out := make([]string, len(typed))
	for i := range typed {
		out[i] = typed[i].Name
	}
	return out
}

// namespaces adds reading namespaces for their labels.
func (c *collector) namespaces() {
	need := Need{Verb: "get", Resource: "namespaces", Namespace: c.namespace, Name: c.namespace, Why: "labels of namespaces, by which policies select"}
	c.add(need)
	if c.namespace == "" {
		need.Verb = "list"
		c.add(need)
	}
}

// KyvernoKinds are the kinds of a cluster with Kyverno, whose settings say which objects it ignores.
func KyvernoKinds() []schema.GroupKind {
	return []schema.GroupKind{
		{Group: "kyverno.io", Kind: "ClusterPolicy"},
		{Group: "policies.kyverno.io", Kind: "MutatingPolicy"},
	}
}

// Defines reports whether objects of a kind define other kinds.
func Defines(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"} ||
		gk == schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
}

// inputs adds the policies of the cluster, and their inputs.
func (c *collector) inputs() {
	for _, m := range c.Served {
		if gk := m.GroupVersionKind.GroupKind(); gk.Group != "" && c.Reads(gk) {
			need := Need{Verb: "list", Group: gk.Group, Resource: m.Resource.Resource, Why: "installed policies, and their exceptions, bindings and settings"}
			c.add(need)
			c.watch(need)
		}
		if c.Watches && Defines(m.GroupVersionKind.GroupKind()) {
			c.watch(Need{Group: m.Resource.Group, Resource: m.Resource.Resource, Why: "kinds that are installed, changed or removed meanwhile"})
		}
		if slices.Contains(KyvernoKinds(), m.GroupVersionKind.GroupKind()) {
			c.add(Need{Verb: "get", Resource: "configmaps", Namespace: "kyverno", Name: "kyverno", Why: "settings of Kyverno: objects that it ignores"})
		}
	}
}

func (c *collector) rule(d *engine.Description) {
	if !c.reaches(d) {
		return
	}
	for _, s := range d.Targets {
		for _, part := range c.targets(s) {
			c.needRead(part, "objects that rules change when others trigger them")
			for _, m := range c.kinds(part) {
				c.watch(about(m, part))
			}
		}
	}
	for _, a := range d.Asks {
		c.ask(d, a)
	}
	for _, s := range d.Params {
		c.watchParams(s)
	}
	c.autoscalers(d)
	if c.Purpose == Apply || c.DryRuns {
		c.write(d)
	}
}

// reaches reports whether the run can read any relevant object that the rule matches.
func (c *collector) reaches(d *engine.Description) bool {
	scope := *c.scope()
	if d.Existing == engine.ByTrigger {
		if !c.propagates(d) {
			return false
		}
		scope = everywhere
	}
	reaches := false
	err := c.eachKind(d.Matches, scope, func(*meta.RESTMapping, *engine.KindFilter) { reaches = true })
	return err == nil && reaches
}

// autoscalers adds reading autoscalers if a rule may change what they set.
func (c *collector) autoscalers(d *engine.Description) {
	for _, scaler := range []struct{ group, kind, sets string }{
		{"autoscaling", "HorizontalPodAutoscaler", "spec.replicas"},
		{"autoscaling.k8s.io", "VerticalPodAutoscaler", ".resources"},
	} {
		m, err := c.RESTMapping(schema.GroupKind{Group: scaler.group, Kind: scaler.kind})
		if err == nil && slices.ContainsFunc(d.Changes, func(path string) bool {
			return strings.Contains(path, scaler.sets)
		}) {
			c.add(Need{
				Verb: "list", Group: m.Resource.Group, Resource: m.Resource.Resource, Namespace: c.namespace,
				Why: "autoscalers that would revert changed fields: without it, there is no warning",
			})
		}
	}
}
