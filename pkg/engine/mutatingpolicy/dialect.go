package mutatingpolicy

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Name is the name of the dialect in reports.
const Name = "mutatingpolicy"

// Dialect reads Kyverno's MutatingPolicies.
type Dialect struct{ project Project }

// New returns the dialect. project applies JMESPath, the language of GlobalContextEntry projections.
func New(project Project) *Dialect { return &Dialect{project: project} }

// Name is "mutatingpolicy".
func (*Dialect) Name() string { return Name }

// Accepts returns Policy for MutatingPolicy and NamespacedMutatingPolicy, and Input for
// PolicyException and GlobalContextEntry.
func (*Dialect) Accepts(gk schema.GroupKind) engine.Role {
	if gk == policydecode.GlobalContextKind {
		return engine.Input
	}
	if gk.Group != group {
		return engine.Foreign
	}
	switch gk.Kind {
	case kindPolicy, kindNamespacedPolicy:
		return engine.Policy
	case kindException:
		return engine.Input
	}
	return engine.Foreign
}

// Compile reads policies and their inputs. A policy with an invalid expression is omitted and reported, since
// Kyverno disables it.
func (d *Dialect) Compile(c engine.Compilation) (engine.Program, error) {
	shared := &compiler{
		keeps: c.Rules.Keeps(), environments: map[bool]*cel.Environment{}, entries: &Entries{Project: d.project},
	}
	var policies []engine.Document
	var reports []*policydecode.Report
	report := func(document engine.Document) *policydecode.Report {
		reports = append(reports, newReport(document, &c))
		return reports[len(reports)-1]
	}
	for _, document := range c.Documents {
		gk := document.Key.GroupKind
		switch {
		case d.Accepts(gk) == engine.Policy:
			policies = append(policies, document)
		case gk == policydecode.GlobalContextKind:
			shared.entries.Add(document)
		case d.Accepts(gk) == engine.Input:
			shared.exceptions = append(shared.exceptions, decodeException(report(document), document))
		}
	}
	slices.SortStableFunc(policies, func(a, b engine.Document) int {
		return cmp.Or(cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Key.Namespace, b.Key.Namespace))
	})
	lintExceptions(shared.exceptions, policies)
	p := &program{}
	for _, document := range policies {
		p.rules = append(p.rules, shared.compile(report(document), document)...)
	}
	for _, r := range p.rules {
		p.Add(r.describe())
	}
	var errs []error
	for _, r := range reports {
		errs = append(errs, r.Errs...)
		r.Line = nil // let the documents be freed
	}
	return p, errors.Join(errs...)
}

func newReport(d engine.Document, c *engine.Compilation) *policydecode.Report {
	name := d.Key.Name
	if ns := d.Key.Namespace; ns != "" && d.Key.Kind != kindPolicy {
		name = ns + "/" + name
	}
	return policydecode.NewReport(d, d.Key.Kind+" "+name, c)
}

// program is all rules by policy, derived ones last. It is an engine.Propagator.
type program struct {
	engine.Descriptions
	rules []*rule
}

// Evaluate runs the rules without targets; in the second round, those whose reinvocationPolicy asks for it.
// Each sees the object as the previous rule left it; one that fails leaves it unchanged. If a rule would deny
// the object, none changes it.
func (p *program) Evaluate(
	ctx context.Context, t engine.Target, w *engine.World, sink engine.Sink,
) (*unstructured.Unstructured, error) {
	steps := make([]engine.Step, 0, len(p.rules))
	now, denied := t, ""
	for _, r := range p.rules {
		if r.policy.targets != nil || (t.Request.Reinvocation && !r.Reinvoked) {
			continue
		}
		step := r.simulate(ctx, now, w, sink, func(e *execution) (map[string]any, error) {
			conditions := r.Conditions
			if r.policy.existing {
				conditions = append(slices.Clip(conditions), r.targetConditions...)
			}
			return e.mutate(conditions)
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch step.Outcome {
		case engine.Changed:
			now = now.With(step.After)
			now.Tainted = now.Tainted || step.Confidential
		case engine.Denied:
			denied = cmp.Or(denied, r.Ref.String())
		}
		steps = append(steps, step)
	}
	engine.HandOver(sink, steps, denied)
	if denied != "" {
		return t.Object, nil
	}
	return now.Object, nil
}

func (r *rule) describe() engine.Description {
	d := r.Policy.Describe()
	d.Asks = Asks(Asking{Scope: r.Scope, Namespace: r.policy.Namespace, Entries: r.entries})
	d.Matches, d.Requests = engine.SplitRequests(selectionsOf(r.Constraints, r.policy.Namespace))
	for _, x := range r.exceptions {
		if !x.Partial() { // a partial one only allows values
			d.Where = append(d.Where, "unless PolicyException "+x.Name+" holds")
		}
	}
	if r.Ref.Rule != "" {
		d.From = r.policy.Ref
	}
	switch {
	case r.policy.targets != nil:
		d.Existing = engine.ByTrigger
		d.Targets = selectionsOf(r.policy.targets, r.policy.Namespace)
		if r.target != nil {
			d.Targets = []engine.Selection{{Group: "*", Kind: "*", Namespace: r.policy.Namespace}}
		}
	case r.policy.existing:
		d.Existing = engine.InBackground
	}
	if r.AsksUser() {
		d.Asks = append(d.Asks, engine.AskRequestUser())
	}
	return d
}
