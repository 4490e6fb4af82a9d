package factory

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
)

// asked also streams the objects that the user named and no policy selects: explain says why
// not.
type asked struct {
	engine.Source
	selections []engine.Selection
}

// Pages implements engine.Source.
func (s asked) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return s.Source.Pages(ctx, slices.Concat(selections, s.selections))
}

// Explain makes a run explain the objects that the user named. With nothingElse the run shows
// only these, but all other objects can still trigger rules that change them; otherwise only the
// objects that the run shows can.
func (f *Factory) Explain(o *preview.Options, args []string, nothingElse bool) error {
	o.Reasons, o.Namespace = true, f.oneNamespace()
	keys, err := Resolve(o.World.Mapper, args)
	if err != nil || len(keys) == 0 {
		return err
	}
	o.Objects = asked{Source: o.Objects, selections: selectionsOf(keys)}
	if !nothingElse {
		return nil
	}
	scope, err := f.scope(o.World.Mapper, nil, o.Request)
	if err != nil {
		return err
	}
	scope.Labels, scope.Fields = nil, nil // they choose what to explain
	o.Triggers = asked{Source: f.Secrets.Source(f.source(scope)), selections: selectionsOf(keys)}
	o.Chosen = func(k engine.ObjectKey) bool {
		return slices.ContainsFunc(keys, func(typed engine.ObjectKey) bool {
			return typed.GroupKind == k.GroupKind && (typed.Name == "" || typed.Name == k.Name)
		})
	}
	return nil
}

func selectionsOf(keys []engine.ObjectKey) []engine.Selection {
	out := make([]engine.Selection, len(keys))
	for i, k := range keys {
		out[i] = engine.Selection{Group: k.Group, Kind: k.Kind, Name: k.Name}
	}
	return out
}

// NoObject returns the error of a run that found no object.
func (f *Factory) NoObject() error {
	if f.Objects.AllNamespaces || f.Objects.Offline() {
		return &noObjectError{}
	}
	return &noObjectError{Namespace: f.namespace()}
}

// noObjectError reports that none of the named objects exists.
type noObjectError struct{ Namespace string }

// Error names the namespace that was searched.
func (e *noObjectError) Error() string {
	if e.Namespace == "" {
		return "there is no such object"
	}
	return fmt.Sprintf("there is no such object in namespace %s; use -n for another namespace, or -A for all", e.Namespace)
}
