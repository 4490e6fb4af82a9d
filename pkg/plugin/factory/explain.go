package factory

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
)

// asked also streams the objects that the user named although no policy selects
// them: why it does not is what the user wants to know.
type asked struct {
	engine.Source
	selections []engine.Selection
}

// Pages implements engine.Source.
func (s asked) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return s.Source.Pages(ctx, slices.Concat(selections, s.selections))
}

// Explain prepares a run to tell everything about what the user named. Where it is
// about nothing else, all other objects may still set off rules that act on that;
// in a preview, only the objects that it shows do.
func (w *Factory) Explain(ctx context.Context, o *preview.Options, args []string, nothingElse bool) error {
	o.Reasons, o.Namespace = true, w.oneNamespace()
	keys, err := Resolve(o.World.Mapper, args)
	if err != nil || len(keys) == 0 {
		return err
	}
	o.Objects = asked{Source: o.Objects, selections: selectionsOf(keys)}
	if !nothingElse {
		return nil
	}
	scope, err := w.scope(o.World.Mapper, nil, o.Request)
	if err != nil {
		return err
	}
	scope.Labels, scope.Fields = nil, nil // they choose what to explain
	o.Triggers = asked{Source: w.Secrets.Source(w.source(ctx, scope)), selections: selectionsOf(keys)}
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

// NoObject is the error of a run that was to find an object and found none.
func (w *Factory) NoObject() error {
	if w.Objects.AllNamespaces || w.Objects.Offline() {
		return &NoObjectError{}
	}
	return &NoObjectError{Namespace: w.namespace()}
}

// NoObjectError tells that there is nothing of what the user named.
type NoObjectError struct{ Namespace string }

// Error says where it was looked for.
func (e *NoObjectError) Error() string {
	if e.Namespace == "" {
		return "there is no such object"
	}
	return fmt.Sprintf("there is no such object in namespace %s; -n names another one, -A looks in all", e.Namespace)
}
