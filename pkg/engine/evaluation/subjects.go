package evaluation

import (
	"context"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// subjects is a selection that several effects share, read once.
type subjects struct {
	engine.Selection
	effects []*orderedEffect
	named   []engine.ObjectKey // the subresources that match a pattern of names
}

// contextFor returns a context for the requests for the subjects, which a Secret may have chosen.
func (s *subjects) contextFor(ctx context.Context) context.Context {
	if slices.ContainsFunc(s.effects, func(f *orderedEffect) bool { return f.Confidential }) {
		return engine.WithoutLog(ctx)
	}
	return ctx
}

// single reports whether the selection names one object, whose labels may have to be compared.
func (s *subjects) single() bool {
	one := s.Selection
	if one.Namespace != "" {
		one.Labels = nil
	}
	return one.Exact()
}

// bySubjects groups the effects by the selections that they act on within the scope, in order.
func (e *Evaluation) bySubjects() []*subjects {
	type id struct { // every field of a selection, with its labels as a string
		engine.Selection
		labels string
	}
	var out []*subjects
	known := map[id]*subjects{}
	var all []*orderedEffect
	for _, l := range e.lanes() {
		all = append(all, l.effects.all...)
	}
	for _, f := range all {
		for _, s := range e.narrow(f.Subjects) {
			if !e.options.Scope.ShardMeets(s) {
				continue
			}
			k := id{s, fmt.Sprint(s.Labels)}
			k.Labels = nil
			if known[k] == nil {
				known[k] = &subjects{Selection: s}
				out = append(out, known[k])
			}
			known[k].effects = append(known[k].effects, f)
		}
	}
	return out
}

// unvisited evaluates the effects' subjects in the scope that were not in the source.
type unvisited struct {
	*Evaluation
	visited keys
	emit    func(*engine.Change) error
}

func (e unvisited) run(ctx context.Context) error {
	groups := e.bySubjects()
	for _, s := range groups {
		if e.byObject(s) {
			if err := e.nameSubresources(ctx, s); err != nil {
				return err
			}
		}
	}
	var page []subject
	for _, s := range groups {
		for _, k := range e.keys(s) {
			if page = append(page, subject{s, k, nil}); len(page) == pageSize {
				if err := e.onPage(ctx, page); err != nil {
					return err
				}
				page = nil
			}
		}
		if s.single() || s.Subresource != "" {
			continue
		}
		if err := e.onPage(ctx, page); err != nil {
			return err
		}
		page = nil
		if err := e.runListed(s.contextFor(ctx), s); err != nil {
			return err
		}
	}
	return e.onPage(ctx, page)
}

// report hands over the change of a subject, once.
func (e unvisited) report(c *engine.Change) error {
	if !e.visited.add(c.Subject) {
		return nil
	}
	e.complete(c)
	return e.emit(c)
}

// byObject reports whether a selection means subresources of objects that must be found first: a subresource
// cannot be listed, and does not have its object's labels and fields.
func (e unvisited) byObject(s *subjects) bool {
	return s.Subresource != "" && (!s.Exact() || e.options.Scope != nil && e.options.Scope.Labels != nil)
}

// nameSubresources finds the objects whose subresource a selection means.
func (e unvisited) nameSubresources(ctx context.Context, s *subjects) error {
	ctx = s.contextFor(ctx)
	objects := s.Selection
	objects.Subresource = ""
	for u, err := range e.reader.List(ctx, objects) {
		if err != nil {
			if c := e.missing(s, err); c != nil && ctx.Err() == nil {
				return e.report(c)
			}
			return ctx.Err()
		}
		k := engine.KeyOf(u)
		if !e.options.Scope.Includes(k, u.GetLabels()) || !e.options.Scope.InShard(k) {
			continue
		}
		k.Subresource = s.Subresource
		s.named = append(s.named, k)
		for _, f := range s.effects {
			named := e.effects.named
			if f.created && e.created != nil {
				named = e.created.effects.named
			}
			if acting := named[k.Named()]; !slices.Contains(acting, f) {
				named[k.Named()] = append(acting, f)
			}
		}
	}
	return nil
}

// keys returns the objects that a selection names, to be read one by one.
func (e unvisited) keys(s *subjects) []engine.ObjectKey {
	if s.single() && !e.byObject(s) {
		return []engine.ObjectKey{subjectKey(s.Selection)}
	}
	return s.named
}

// subject is an object that effects name, or that their selection lists.
type subject struct {
	*subjects
	key    engine.ObjectKey
	object *unstructured.Unstructured // nil: it is read by itself
}

const (
	// pageSize is how many subjects are kept to be evaluated side by side.
	pageSize = 100
	// readers is how many subjects are read at once by name.
	readers = 8
)

// onPage evaluates subjects side by side, and reports their changes in order.
func (e unvisited) onPage(ctx context.Context, page []subject) error {
	changes := make([]*engine.Change, len(page))
	err := sideBySide(ctx, max(readers, e.options.Workers), len(page),
		func(ctx context.Context, i int) (err error) {
			changes[i], err = e.evaluate(page[i].contextFor(ctx), page[i])
			return err
		})
	if err != nil {
		return err
	}
	return e.handOver(ctx, slices.DeleteFunc(changes, func(c *engine.Change) bool { return c == nil }), e.take)
}

// take reports the result of evaluate.
func (e unvisited) take(c *engine.Change) error {
	if len(c.Steps) == 0 && !e.visited.has(c.Subject) && !e.options.Scope.InPercent(c.Subject) {
		e.leaveOut(e.visited, c.Subject)
		return nil
	}
	return e.report(c)
}

// runListed evaluates the subjects that a selection lists, while the next ones are read.
func (e unvisited) runListed(ctx context.Context, s *subjects) error {
	for page, err := range engine.ReadAhead(ctx,
		func(ctx context.Context) iter.Seq2[[]subject, error] { return e.listPages(ctx, s) }) {
		if err == nil {
			err = e.onPage(ctx, page)
		} else if c := e.missing(s, err); c != nil && ctx.Err() == nil {
			err = e.report(c)
		} else {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listPages lists the subjects of a selection within the scope.
func (e unvisited) listPages(ctx context.Context, s *subjects) iter.Seq2[[]subject, error] {
	return func(yield func([]subject, error) bool) {
		var page []subject
		for u, err := range e.reader.List(ctx, s.Selection) {
			if err != nil {
				if yield(page, nil) {
					yield(nil, err)
				}
				return
			}
			if k := engine.KeyOf(u); e.means(s, k, u) {
				page = append(page, subject{s, k, u})
			}
			if len(page) == pageSize {
				if !yield(page, nil) {
					return
				}
				page = nil
			}
		}
		yield(page, nil)
	}
}

// means reports whether an object is one of the subjects, in the scope. For a subresource this is already
// decided.
func (e unvisited) means(s *subjects, k engine.ObjectKey, u *unstructured.Unstructured) bool {
	return k.Subresource != "" || s.Matches(u) && e.options.Scope.Includes(k, u.GetLabels()) &&
		e.options.Scope.InShard(k)
}

// target returns a subject that was read.
func (e unvisited) target(k engine.ObjectKey, u *unstructured.Unstructured) engine.Target {
	k.UID = u.GetUID()
	t := engine.Target{Key: k, Object: u, Request: e.options.Request}
	if e.world.Document != nil && k.Subresource != "scale" {
		d := e.world.Document(k)
		t.Origin, t.Written = d.Origin, d.Object()
	}
	if t.Request.Operation != engine.OperationCreate {
		t.OldObject = u
	}
	return t
}

// evaluate returns the change of a subject: nil if it is not meant or already visited, and only its key if it
// is beyond the percentage of the scope.
func (e unvisited) evaluate(ctx context.Context, s subject) (*engine.Change, error) {
	if e.visited.has(s.key) {
		return nil, nil
	}
	if s.object == nil {
		var err error
		if s.object, err = e.reader.Get(ctx, s.key); err != nil {
			return e.missing(s.subjects, err), ctx.Err()
		}
	}
	if !e.means(s.subjects, s.key, s.object) {
		return nil, nil
	}
	if !e.options.Scope.InPercent(s.key) {
		return &engine.Change{Subject: s.key}, nil
	}
	t := e.target(s.key, s.object)
	if ns := s.object.GetNamespace(); ns != "" {
		// Without a readable Namespace, t.Namespace is nil; rules that ask for its labels report it.
		t.Namespace, _ = e.world.ReadNamespace(ctx, ns)
	}
	return e.both(ctx, t, false)
}

// missing returns the change of a subject that does not exist, or may not be read: a failed step of each rule
// that wanted to change it; nil without such rules. A pattern without objects is not a failure, but an object
// that the user typed should exist.
func (e unvisited) missing(s *subjects, cause error) *engine.Change {
	c := &engine.Change{Subject: subjectKey(s.Selection)}
	for _, f := range s.effects {
		err := fmt.Errorf("reading the target: %w", cause)
		if apierrors.IsNotFound(cause) {
			if !f.Subjects.Exact() {
				continue
			}
			err = fmt.Errorf("the target does not exist: %w", cause)
		}
		addStep(c, &engine.Step{
			Rule: f.Rule, TriggeredBy: new(f.Trigger), Outcome: engine.Failed, Err: brief(err),
			Confidential: f.Confidential, AsCreated: f.created && e.created != nil,
		})
	}
	if s.effects[0].Confidential && c.Shown != nil {
		const hidden = engine.HiddenValue // a Secret may have named it
		c.Shown.Subject = engine.ObjectKey{
			GroupKind: schema.GroupKind{Kind: hidden}, Version: hidden, Namespace: hidden, Name: hidden,
		}
	}
	if len(c.Steps) > 0 {
		return c
	}
	if e.options.Scope.Names(c.Subject) {
		e.isUnreadable(&engine.UnreadableError{What: c.Subject.String(), Err: cause})
	}
	return nil
}
