package evaluation

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// namedSubject is a subject that a rule names.
type namedSubject struct {
	*subjects
	key    engine.ObjectKey
	object *unstructured.Unstructured
	err    error
}

// readers is how many subjects are read at once that are read by themselves.
const readers = 8

// runNamed reads subjects, several at once, and evaluates them in their order. What cannot be read
// is a failed step of every rule that wanted it.
func (e unvisited) runNamed(ctx context.Context, named []*namedSubject) error {
	named = slices.DeleteFunc(named, func(n *namedSubject) bool { return e.visited.has(n.key) })
	for _, n := range named {
		n.object = e.listed(ctx, n.key)
	}
	contexts := make([]context.Context, len(named)) // what is read notes there that it is secret
	err := sideBySide(ctx, readers, len(named), func(_ context.Context, i int) error {
		n := named[i]
		contexts[i] = n.under(ctx)
		if n.object == nil {
			n.object, n.err = e.reader.Get(contexts[i], n.key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, n := range named {
		switch {
		case e.visited.has(n.key): // by a selection before
		case n.err != nil:
			err = e.missing(contexts[i], n.subjects, n.err)
		default:
			err = e.runSubject(contexts[i], n.subjects, n.key, n.object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxByName is how many objects that rules name in one area are read by themselves.
	maxByName = 99
	// readsOfOne is how many objects of a listing take as much as reading one by itself, at least.
	readsOfOne = 5
)

// areas are where rules name objects. Where they name many, a listing takes the place of reading each by itself, as
// far as it may be made. What it does not have is read by itself.
type areas map[engine.Selection]*area

// area is a kind in a namespace.
type area struct {
	named   int                                   // how many objects rules name there
	listed  bool                                  // or not worth it
	objects map[string]*unstructured.Unstructured // of the listing, by name
}

// areaOf is where an object is, as its area is listed.
func areaOf(k engine.ObjectKey) engine.Selection {
	return engine.Selection{Group: k.Group, Version: k.Version, Kind: k.Kind, Namespace: k.Namespace}
}

// count notes the objects that a selection names and that did not stream by. Secrets are read by themselves, so that
// no others are read, and so is what a Secret names.
func (e unvisited) count(s *subjects) {
	if slices.ContainsFunc(s.effects, func(f *orderedEffect) bool { return f.secret }) {
		return
	}
	for _, k := range e.keys(s) {
		if k.Namespace == "" || k.Subresource != "" || k.IsSecret() || e.visited.has(k) {
			continue
		}
		at := areaOf(k)
		if e.areas[at] == nil {
			e.areas[at] = &area{}
		}
		e.areas[at].named++
	}
}

// listed returns an object of an area that is listed. It is nil for one that is to be read by itself.
func (e unvisited) listed(ctx context.Context, k engine.ObjectKey) *unstructured.Unstructured {
	a := e.areas[areaOf(k)]
	if a == nil || k.Subresource != "" {
		return nil
	}
	if !a.listed {
		a.listed = true
		e.list(ctx, areaOf(k), a)
	}
	object := a.objects[k.Name]
	delete(a.objects, k.Name)
	return object
}

// list reads an area, as long as that takes less than reading by itself each object that is named there. Where it
// fails, reading each object by itself reports why.
func (e unvisited) list(ctx context.Context, at engine.Selection, a *area) {
	if a.named <= maxByName {
		return
	}
	a.objects = map[string]*unstructured.Unstructured{}
	read := 0
	for u, err := range e.reader.List(ctx, at) {
		key := engine.ObjectKey{}
		if err == nil {
			key = engine.KeyOf(u).Named()
		}
		if read++; err != nil || read > a.named*readsOfOne || len(a.objects) == a.named {
			return
		}
		if len(e.effects.named[key]) > 0 && !e.visited.has(key) {
			a.objects[key.Name] = u
		}
	}
}
