package factory

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
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

// Explain makes a run explain the objects that it shows, and those that the user named and that
// no policy selects.
func (f *Factory) Explain(o *preview.Options, args []string) error {
	o.Reasons = true
	keys, err := Resolve(o.World.Mapper, args)
	if err != nil || len(keys) == 0 {
		return err
	}
	var named []engine.Selection
	for _, k := range keys {
		named = append(named, o.Scope.Narrow(engine.Selection{Group: k.Group, Kind: k.Kind, Name: k.Name}, o.World.Mapper)...)
	}
	o.Objects, o.Triggers = asked{o.Objects, named}, asked{o.Triggers, named}
	return nil
}

// ExplainAll makes a run explain all objects of its source, whatever the policies select.
func (f *Factory) ExplainAll(o *preview.Options) {
	o.Reasons = true
	o.Objects = asked{o.Objects, []engine.Selection{{Group: "*", Kind: "*"}}}
}

// NoObject returns the error of a run that found no object.
func (f *Factory) NoObject() error {
	if f.Objects.AllNamespaces || f.Objects.Offline() {
		return &noObjectError{}
	}
	return &noObjectError{Namespaces: f.Namespaces()}
}

// noObjectError reports that none of the named objects exists.
type noObjectError struct{ Namespaces []string }

// Error names the namespaces that were searched.
func (e *noObjectError) Error() string {
	if len(e.Namespaces) == 0 {
		return "there is no such object"
	}
	return fmt.Sprintf("there is no such object in %s; use -n for another namespace, or -A for all", wording.Namespaces(e.Namespaces))
}
