package kyverno

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Name is the name of the dialect in reports.
const Name = "kyverno"

// valuesKind is what `kyverno apply --values-file` reads.
//
//nolint:gochecknoglobals // an immutable value
var valuesKind = schema.GroupKind{Group: "cli.kyverno.io", Kind: "Values"}

// Dialect reads Kyverno's ClusterPolicy and Policy.
type Dialect struct{}

// New returns the dialect.
func New() *Dialect { return &Dialect{} }

// Name is "kyverno".
func (*Dialect) Name() string { return Name }

// Accepts reports ClusterPolicy and Policy as policies, and PolicyException,
// GlobalContextEntry and Values as their inputs.
func (*Dialect) Accepts(gk schema.GroupKind) engine.Role {
	switch gk {
	case schema.GroupKind{Group: "kyverno.io", Kind: "ClusterPolicy"},
		schema.GroupKind{Group: "kyverno.io", Kind: "Policy"}:
		return engine.Policy
	case valuesKind, schema.GroupKind{Group: "kyverno.io", Kind: "PolicyException"},
		schema.GroupKind{Group: "kyverno.io", Kind: "GlobalContextEntry"}:
		return engine.Input
	}
	return engine.Foreign
}

// Compile reads policies and their inputs. A rule that does not compile is omitted and reported; the other
// rules of its policy run.
func (d *Dialect) Compile(c engine.Compilation) (engine.Program, error) {
	var policies []*policy
	in, given := &inputs{}, givenNames(c.Documents)
	all := &policydecode.Report{}
	for _, document := range c.Documents {
		gk := document.Key.GroupKind
		r := policydecode.NewReport(document, strings.TrimSpace(gk.Kind+" "+nameOf(document)), &c)
		err := engine.Guard(func() error {
			switch d.Accepts(gk) {
			case engine.Policy:
				policies = append(policies, decodePolicy(r, document, given))
			case engine.Input:
				in.add(r, document)
			}
			return nil
		})
		if err != nil {
			policydecode.Node{Report: r}.Fail("%w", err)
		}
		all.Errs = append(all.Errs, r.Errs...)
	}
	slices.SortStableFunc(policies, func(a, b *policy) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.namespace, b.namespace))
	})
	lintExceptions(in.exceptions, policies)
	keeps := c.Rules.Keeps()
	for _, p := range policies {
		p.inputs = in
		p.rules = slices.DeleteFunc(p.rules, func(r *rule) bool { return !keeps(r.ref, r.source()) })
		for _, r := range p.rules {
			r.annotates, r.engineView = c.Annotate, c.EngineView
			r.exceptions = excepting(in.exceptions, r.ref)
		}
	}
	return newProgram(policies), all.Err()
}

// source returns the rule from which this one is derived, or the rule itself.
func (r *rule) source() engine.RuleRef {
	written := r.ref
	written.Rule = r.written
	return written
}

// nameOf returns "name", or "namespace/name".
func nameOf(d engine.Document) string {
	return strings.TrimPrefix(d.Key.Namespace+"/"+d.Key.Name, "/")
}

func (r *rule) describe() engine.Description {
	d := engine.Description{
		Rule: r.ref, Matches: r.match.Selections(r.policy.namespace),
		Requests: r.match.Requests(r.policy.namespace), Existing: engine.OnAdmission,
		Where: r.where(), Operations: r.match.Operations(), AsksOperation: r.asksOperation, Gap: r.gap,
	}
	if r.written != r.ref.Rule {
		d.From = r.source()
	}
	for _, t := range r.targets {
		d.Existing = engine.ByTrigger
		d.Targets = append(d.Targets, t.described())
	}
	d.Changes = engine.Distinct(r.footprint.paths)
	for _, entries := range r.contexts() {
		d.Asks = append(d.Asks, entries.Asks(r.policy.inputs.globals)...)
	}
	if r.match.AsksRoles() || r.exclude.AsksRoles() {
		for _, s := range match.Bindings() {
			d.Asks = append(d.Asks,
				engine.Ask{Of: engine.AskObjects, What: "the roles of the requesting user", Objects: s})
		}
	}
	return d
}

// where describes the conditions of the rule beyond its selections.
func (r *rule) where() []string {
	out := append(r.match.Where(r.policy.namespace), r.exclude.Unless()...)
	if r.preconditions != nil {
		out = append(out, "preconditions hold")
	}
	for _, x := range r.exceptions {
		out = append(out, "unless PolicyException "+x.name+" holds")
	}
	return out
}

// contexts returns the context entries of the rule, its targets and its loops.
func (r *rule) contexts() []Entries {
	out := []Entries{r.context}
	for _, t := range r.targets {
		out = append(out, t.context)
	}
	return append(out, r.mutation.contexts()...)
}
