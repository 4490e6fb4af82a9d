package kyverno

import (
	"cmp"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
)

// Describe tells of each rule what its document says. The program is an
// engine.Describer.
func (p *program) Describe() []engine.Description {
	out := make([]engine.Description, 0, len(p.refs))
	for _, policy := range p.policies {
		for _, r := range policy.rules {
			out = append(out, r.describe())
		}
	}
	return out
}

func (r *rule) describe() engine.Description {
	d := engine.Description{
		Rule: r.ref, Matches: r.match.Selections(r.policy.namespace), Existing: engine.OnAdmission,
		Operations: r.match.Operations(), Gap: r.gap,
	}
	for _, t := range r.targets {
		d.Existing = engine.ByTrigger
		d.Targets = append(d.Targets, t.described())
	}
	mutate := mapping(r.document["mutate"])
	changes := &changedPaths{}
	changes.ofMutate(mutate)
	d.Changes = changes.paths
	a := &asked{rule: r}
	a.context(r.document["context"])
	a.mutate(mutate)
	if r.match.AsksRoles() || r.exclude.AsksRoles() {
		for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
			s := engine.Selection{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind}
			a.list = append(a.list, engine.Ask{Of: engine.AskObjects, What: "the roles of the requesting user", Objects: s})
		}
	}
	d.Asks = a.list
	return d
}

// described is what a target names without its trigger.
func (t *target) described() engine.Selection {
	kind, err := parseTargetKind(t.written["apiVersion"], t.kind)
	if err != nil || mentions(t.written["apiVersion"]+t.kind, "{{") {
		kind = selector.Kind{Group: "*", Kind: "*"}
	}
	return engine.Selection{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Subresource: kind.Subresource,
		Namespace: cmp.Or(t.own, plain(t.written["namespace"])), Name: plain(t.written["name"]), Labels: t.labels,
	}
}

// plain is a text that no variable has a part in; another one is computed.
func plain(text string) string {
	if mentions(text, "{{") || mentions(text, "$(") {
		return engine.Computed
	}
	return text
}

// outline is a path in which "*" stands for each variable.
func outline(path string) string {
	var out strings.Builder
	depth := 0
	for i := 0; i < len(path); i++ {
		switch {
		case strings.HasPrefix(path[i:], "{{"):
			if depth == 0 {
				out.WriteByte('*')
			}
			depth++
			i++
		case depth > 0 && strings.HasPrefix(path[i:], "}}"):
			depth--
			i++
		case depth == 0:
			out.WriteByte(path[i])
		}
	}
	return out.String()
}

// asked collects what a rule asks of the world.
type asked struct {
	rule *rule
	list []engine.Ask
}

// mutate looks into the targets and loops of a mutate block.
func (a *asked) mutate(block map[string]any) {
	for _, key := range []string{"targets", "foreach"} {
		entries, _ := block[key].([]any)
		for _, entry := range entries {
			a.context(mapping(entry)["context"])
			a.mutate(mapping(entry))
		}
	}
}

func (a *asked) context(entries any) {
	list, _ := entries.([]any)
	for _, entry := range list {
		fields := mapping(entry)
		switch {
		case fields["configMap"] != nil:
			a.configMap(mapping(fields["configMap"]))
		case fields["apiCall"] != nil:
			a.call(mapping(fields["apiCall"]))
		case fields["globalReference"] != nil:
			a.global(text(mapping(fields["globalReference"])["name"]))
		case fields["imageRegistry"] != nil:
			a.list = append(a.list, engine.Ask{Of: engine.AskRegistry, What: text(mapping(fields["imageRegistry"])["reference"])})
		}
	}
}

func (a *asked) configMap(fields map[string]any) {
	namespace, name := text(fields["namespace"]), text(fields["name"])
	if namespace == "" {
		namespace = cmp.Or(a.rule.policy.namespace, "default")
	}
	a.list = append(a.list, engine.Ask{
		Of: engine.AskObjects, What: "ConfigMap " + namespace + "/" + name,
		Objects: engine.Selection{Version: "v1", Kind: "ConfigMap", Namespace: plain(namespace), Name: plain(name)},
	})
}

func (a *asked) call(fields map[string]any) {
	method := cmp.Or(text(fields["method"]), "GET")
	if path := text(fields["urlPath"]); path != "" {
		a.list = append(a.list, engine.Ask{Of: engine.AskAPI, What: method + " " + path, Method: method, Path: outline(path)})
		return
	}
	url := text(mapping(fields["service"])["url"])
	a.list = append(a.list, engine.Ask{Of: engine.AskService, What: method + " " + url})
}

// global asks for what a GlobalContextEntry reads. One that is not among the
// documents of the run is read from the cluster, and what it reads is not known.
func (a *asked) global(reference string) {
	name, _, _ := strings.Cut(reference, ".")
	entry := a.rule.policy.inputs.entries[name]
	if entry == nil {
		s := engine.Selection{Group: globalEntryKind.Group, Kind: globalEntryKind.Kind, Name: plain(name)}
		a.list = append(a.list, engine.Ask{Of: engine.AskObjects, What: "GlobalContextEntry " + name, Objects: s})
		return
	}
	what := "GlobalContextEntry " + name
	switch {
	case entry.call == nil:
		s := engine.Selection{Group: entry.resource.Group, Kind: "*", Resource: entry.resource.Resource, Namespace: entry.namespace}
		a.list = append(a.list, engine.Ask{Of: engine.AskObjects, What: what, Objects: s})
	case entry.call.urlPath != nil:
		a.list = append(a.list, engine.Ask{
			Of: engine.AskAPI, What: what + ": " + entry.call.method + " " + entry.call.written,
			Method: entry.call.method, Path: outline(entry.call.written),
		})
	default:
		a.list = append(a.list, engine.Ask{Of: engine.AskService, What: what + ": " + entry.call.method + " " + entry.call.written})
	}
}

// text is a value that should be a string.
func text(value any) string {
	s, _ := value.(string)
	return s
}
