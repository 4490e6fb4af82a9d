package gatekeeper

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/location"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// mutator is a compiled mutator of any kind and version.
type mutator struct {
	id         string // as Gatekeeper prints it: "Assign.mutations.gatekeeper.sh /demo"
	kind, name string
	ref        engine.RuleRef
	criteria   match.Criteria
	location   policydecode.Node // in the document, for reports
	path       location.Path
	tests      location.Tests
	action     action // nil where the mutator does not compile
	written    written
}

// written is what lints compare: the criteria and tests as their author wrote them.
type written struct {
	match any
	tests bool
}

// apply runs the mutator on an object that it matches.
func (m *mutator) apply(object map[string]any, key engine.ObjectKey, clock *limit.Clock) (location.Outcome, error) {
	return location.Walk(object, location.Way{Path: m.path, Tests: m.tests, Setter: m.action.Setter(key), Clock: clock})
}

// claim is what the mutator implies about its kinds.
func (m *mutator) claim() schemaClaim {
	c := schemaClaim{ID: m.id, Name: m.kind + " " + m.name, Location: m.path}
	c.Terminal, c.MustTerminate = m.action.Terminal()
	for i := range m.criteria.ApplyTo {
		a := &m.criteria.ApplyTo[i]
		for _, gvk := range typesOf(a) {
			for _, operation := range []engine.Operation{engine.OperationCreate, engine.OperationUpdate} {
				if a.Does(operation) {
					c.Types = append(c.Types, binding{GroupVersionKind: gvk, Operation: operation})
				}
			}
		}
	}
	return c
}

// typesOf are all types that an entry of applyTo names.
func typesOf(a *match.ApplyTo) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, group := range a.Groups {
		for _, version := range a.Versions {
			for _, kind := range a.Kinds {
				out = append(out, schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
			}
		}
	}
	return out
}
