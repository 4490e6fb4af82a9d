package test

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
)

// run is the result of a test's policies on all of its objects, in requests of one operation.
type run struct {
	changes map[engine.ObjectKey]*engine.Change
	caused  map[engine.ObjectKey][]engine.Step // changes of other objects, by their triggers
}

// evaluate runs the policies over the objects, as an admission of each with this operation, which overrides
// that of values.
func (s *suite) evaluate(ctx context.Context, w *factory.Factory, operation engine.Operation) (*run, error) {
	o, programs := *s.options, s.programs
	if o.Request = s.request; operation != "" {
		if values, changed := withoutOperation(s.values); changed {
			programs = s.compile(values)
		}
		o.Request.Operation = operation
	}
	o.States, o.Workers = true, 1
	o.World.Memo = &engine.Memo{}
	o.Objects = s.objects.Source(engine.Scope{ClusterScoped: true, Request: o.Request})
	if err := w.Explain(&o, nil, true); err != nil {
		return nil, err
	}
	out := &run{changes: map[engine.ObjectKey]*engine.Change{}, caused: map[engine.ObjectKey][]engine.Step{}}
	e := evaluation.New(programs, o.World, o.Options)
	if err := e.Prepare(ctx, o.Objects); err != nil {
		return nil, err
	}
	return out, e.Run(ctx, o.Objects, func(c *engine.Change) error {
		out.changes[c.Subject.Named()] = c
		if c.Subject.Of != (engine.Maker{}) && !slices.Contains(s.named, c.Subject) {
			s.named = append(s.named, c.Subject) // results name it by its workload
		}
		for _, step := range c.Steps {
			if trigger := step.Trigger().Named(); trigger.Name != "" && trigger != c.Subject.Named() {
				out.caused[trigger] = append(out.caused[trigger], step)
			}
		}
		return nil
	})
}

// withoutOperation returns values without the operation, and reports whether there was one.
func withoutOperation(values []engine.Document) ([]engine.Document, bool) {
	changed := false
	var without func(any) any
	without = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			out := maps.Clone(v)
			for name, below := range v {
				if out[name] = without(below); name == operationValue {
					changed = true
					delete(out, name)
				}
			}
			return out
		case []any:
			out := slices.Clone(v)
			for i := range out {
				out[i] = without(out[i])
			}
			return out
		}
		return v
	}
	out := slices.Clone(values)
	for i, d := range out {
		object, _ := without(d.Object().Object).(map[string]any)
		out[i] = engine.NewDocument(&unstructured.Unstructured{Object: object}, d.Origin)
		out[i].Line = d.Line
	}
	return out, changed
}

// steps returns the steps of a policy on an object in the first round of the admission; Kyverno's command
// has no other.
func (r *run) steps(key engine.ObjectKey, is func(engine.RuleRef) bool) (out []engine.Step) {
	if c := r.changes[key.Named()]; c != nil {
		for _, step := range c.Steps {
			if step.Again == "" && is(step.Rule) {
				out = append(out, step)
			}
		}
	}
	for _, step := range r.caused[key.Named()] {
		if is(step.Rule) {
			out = append(out, step)
		}
	}
	return out
}

// after returns an object after the last rule of a policy and all before it; nil without the object.
// Policies of a language that Kyverno's command does not know are evaluated together.
func (r *run) after(key engine.ObjectKey, language string,
	isOne func(engine.RuleRef) bool,
) *unstructured.Unstructured {
	is := func(ref engine.RuleRef) bool {
		return isOne(ref) || ref.Dialect == language && !slices.Contains(languages, language)
	}
	c := r.changes[key.Named()]
	if c == nil {
		return nil
	}
	now, out := c.Before, c.Before
	for _, step := range c.Steps {
		if step.After != nil && step.Again == "" {
			now = step.After
		}
		if step.Again == "" && is(step.Rule) {
			out = now
		}
	}
	return out
}

// isPolicy returns a function that reports whether a rule belongs to a policy: NAME, or NAMESPACE/NAME.
func isPolicy(name string) func(engine.RuleRef) bool {
	return func(r engine.RuleRef) bool {
		return r.Policy == name || strings.HasSuffix(r.Policy, "/"+name) ||
			!strings.Contains(r.Policy, "/") && strings.HasSuffix(name, "/"+r.Policy)
	}
}
