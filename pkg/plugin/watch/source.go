package watch

import (
	"context"
	"iter"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Source is an engine.Source of the objects of events, with the requests that they were. It is used for one evaluation.
type Source struct {
	Events []*Event
	Scope  engine.Scope // of what is handed out; its request has the user
	World  *engine.World
	// Live, for the source of triggers, has the objects that others make triggers: it is read from the second time on,
	// with the events in it. Nil for the source of the objects that may change, which has no deleted ones.
	Live engine.Source

	read bool
}

// Pages implements engine.Source.
func (s *Source) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	if s.read && s.Live != nil {
		return s.over(ctx, selections)
	}
	s.read = true
	return func(yield func(engine.Page, error) bool) {
		filter, err := engine.NewObjectFilter(selections, s.Scope)
		if err != nil {
			yield(nil, err)
			return
		}
		p := page{ctx: ctx, source: s}
		for _, e := range s.Events {
			if kind, ok := filter.ForKind(e.Mapping()); ok && e.matches(kind) && (s.Live != nil || e.Operation != engine.OperationDelete) {
				p.events = append(p.events, e)
			}
		}
		if len(p.events) > 0 {
			yield(p, nil)
		}
	}
}

// matches reports whether an object is selected as it is, or as it was.
func (e *Event) matches(kind *engine.KindFilter) bool {
	return kind.Matches(e.Item.Facts()) || e.Old != nil && kind.Matches(e.Old.Facts())
}

// page has the objects of events.
type page struct {
	ctx    context.Context // of the listing, which the page does not outlive
	source *Source
	events []*Event
}

// Len implements engine.Page.
func (p page) Len() int { return len(p.events) }

// Target implements engine.Page.
func (p page) Target(i int) (engine.Target, error) { return p.source.target(p.ctx, p.events[i]) }

// target returns the object of an event, with its request.
func (s *Source) target(ctx context.Context, e *Event) (engine.Target, error) {
	u, err := e.Decode(e.Item)
	if err != nil {
		return engine.Target{}, err
	}
	t := engine.Target{Key: engine.KeyOf(u), Object: u, OldObject: u, Mapping: e.Mapping(), Request: s.Scope.Request}
	t.Request.Operation = e.Operation
	switch {
	case e.Operation == engine.OperationCreate:
		t.OldObject = nil
	case e.Old != nil:
		if t.OldObject, err = e.Decode(*e.Old); err != nil {
			return engine.Target{}, err
		}
	}
	if ns := u.GetNamespace(); ns != "" {
		// One that cannot be read is reported by the rules that ask for it.
		t.Namespace, _ = s.World.ReadNamespace(ctx, ns)
	}
	return t, nil
}

// over streams the live objects, with those of the events as they were requested.
func (s *Source) over(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for p, err := range s.Live.Pages(ctx, selections) {
			if p != nil {
				p = overlaid{Page: p, ctx: ctx, source: s}
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

type overlaid struct {
	engine.Page
	ctx    context.Context // of the listing, which the page does not outlive
	source *Source
}

// Target implements engine.Page.
func (p overlaid) Target(i int) (engine.Target, error) {
	t, err := p.Page.Target(i)
	if err != nil {
		return t, err
	}
	for _, e := range p.source.Events {
		if e.Operation != engine.OperationDelete && e.Key.UID == t.Key.UID {
			return p.source.target(p.ctx, e)
		}
	}
	return t, nil
}
