package gatekeeper

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

type mutator struct {
	id         string // in Gatekeeper's notation: "Assign.mutations.gatekeeper.sh /demo"
	kind, name string
	ref        engine.RuleRef
	criteria   criteria
	location   policydecode.Node // in the document, for reports
	path       location
	tests      pathTests
	action     action            // nil if the mutator does not compile
	source     policydecode.Node // spec.match.source
	written    written
}

// written has the criteria and tests as written, for lints.
type written struct {
	match string // as JSON; "null" for none
	tests bool
}

// claim returns the mutator's assumption about its kinds.
func (m *mutator) claim() schemaClaim {
	c := schemaClaim{ID: m.id, Name: m.kind + " " + m.name, Location: m.path}
	switch a := m.action.(type) {
	case *assign:
		c.MustTerminate = a.External != nil
	case *modifySet:
		c.Terminal = typeSet
	case *assignImage:
		c.Terminal, c.MustTerminate = typeString, true
	}
	for i := range m.criteria.ApplyTo {
		a := &m.criteria.ApplyTo[i]
		for _, gvk := range typesOf(a) {
			for _, operation := range []engine.Operation{engine.OperationCreate, engine.OperationUpdate} {
				if a.does(operation) {
					c.Types = append(c.Types, binding{GroupVersionKind: gvk, Operation: operation})
				}
			}
		}
	}
	return c
}

func typesOf(a *applyTo) []schema.GroupVersionKind {
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

func (m *mutator) decodeApplyTo(n policydecode.Node) []applyTo {
	items := n.List()
	if len(items) == 0 {
		n.Fail("applyTo required for %s mutator %s", m.kind, m.name)
	}
	out := make([]applyTo, 0, len(items))
	for _, item := range items {
		f := item.Fields()
		a := applyTo{
			Groups: f.At("groups").Texts(), Versions: f.At("versions").Texts(), Kinds: f.At("kinds").Texts(),
			Operations: f.At("operations").Texts(),
		}
		for i, kind := range a.Kinds {
			f.At("kinds").List()[i].LintKind(engine.KindName{Groups: a.Groups, Versions: a.Versions, Kind: kind})
		}
		f.Done()
		if len(a.Groups) == 0 || len(a.Versions) == 0 || len(a.Kinds) == 0 {
			item.Fail("invalid applyTo for %s mutator %s, all of group, version and kind must be specified", m.kind, m.name)
		}
		if err := checkOperations(a.Operations); err != nil {
			f.At("operations").Fail("invalid applyTo for %s mutator %s: %w", m.kind, m.name, err)
		}
		lintApplyTo(f, a)
		out = append(out, a)
	}
	types := 0
	for _, a := range out {
		types += len(a.Groups) * len(a.Versions) * len(a.Kinds)
	}
	if types > maxTypes {
		n.Fail("names %d types, more than %d", types, maxTypes)
		return nil
	}
	return out
}

// maxTypes bounds the types of a mutator: each combination of group, version and kind.
const maxTypes = 1_000

func checkOperations(list []string) error {
	for i, o := range list {
		switch {
		case o != "*" && o != "CREATE" && o != "UPDATE":
			return fmt.Errorf("invalid operation %q: must be one of CREATE, UPDATE, *", o)
		case slices.Contains(list[:i], o):
			return fmt.Errorf("duplicate operation %q", o)
		}
	}
	if len(list) > 1 && slices.Contains(list, "*") {
		return errors.New(`wildcard "*" must not be combined with other operations`)
	}
	return nil
}
