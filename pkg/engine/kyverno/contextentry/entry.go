package contextentry

import (
	"context"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Entries are the context of a rule, of a target or of a loop, in the order of the
// policy: data that a rule loads under a name, when the name is first used. They are
// immutable; nil are none.
type Entries struct{ list []entry }

// entry is one of them.
type entry struct {
	name string
	source
}

// source is where an entry gets its data.
type source interface {
	// load gets the data. The scope holds the entries before this one.
	load(from *Sources, s *variables.Scope) (any, error)
	// asks returns what loading reads from the cluster or from elsewhere; nothing for a
	// source that computes its data.
	asks(g Globals) []engine.Ask
	// notIdempotent is for Entries.NotIdempotent.
	notIdempotent() string
}

// Sources are what the entries of a rule load their data from, in one evaluation.
type Sources struct {
	Context context.Context // of the evaluation, which Sources do not outlive
	World   *engine.World
	Globals Globals           // among the documents of the run; others are in the cluster
	Values  *variables.Values // what the user answers in place of servers; may be nil
}

// ask gets what is asked for once in a run. The time that others take does not count.
func (from *Sources) ask(id any, ask func(context.Context) (any, error)) (answer any, err error) {
	return from.World.Memo.Ask(from.Context, id, ask)
}

// answered returns an answer that the user gives in place of a server. It is treated as the server's would be.
func (from *Sources) answered(value any) any {
	if !diff.Same(engine.HideSecrets(value), value) {
		engine.NoteSecret(from.Context)
	}
	return value
}

// Decode reads a list of entries. What is wrong goes to the node's report; an entry
// that has no source is skipped.
func Decode(n policydecode.Node) *Entries {
	var list []entry
	for _, item := range n.List() {
		f := item.Fields()
		name := f.At("name").Required()
		if from := decodeSource(f); from != nil {
			list = append(list, entry{name, from})
		}
		f.Done()
	}
	if list == nil {
		return nil
	}
	return &Entries{list}
}

// decodeSource reads the source of an entry; of several, the first in Kyverno's order.
func decodeSource(f *policydecode.Fields) source {
	var found []string
	for _, key := range []string{"configMap", "apiCall", "globalReference", "imageRegistry", "variable"} {
		if f.Has(key) {
			found = append(found, key)
		}
	}
	switch {
	case len(found) == 0:
		f.Fail("has no source: configMap, apiCall, globalReference, imageRegistry or variable")
		return nil
	case len(found) > 1:
		f.At(found[1]).Lint("has no effect beside %s", found[0])
	}
	switch n := f.At(found[0]); found[0] {
	case "variable":
		return decodeVariable(n)
	case "configMap":
		return decodeConfigMap(n)
	case "apiCall":
		return decodeAPICall(n)
	case "globalReference":
		return decodeGlobalReference(n)
	default:
		return decodeImageLookup(n)
	}
}

// Define makes the entries known to a scope, none of them loaded. One that would
// read something outside of the policy is left out where its value is given.
func (e *Entries) Define(s *variables.Scope, from *Sources, given func(name string) bool) {
	for _, one := range e.all() {
		if _, computed := one.source.(*variable); computed || !given(one.name) {
			s.Define(one.name, func(s *variables.Scope) (any, error) { return one.watched(from, s) })
		}
	}
}

// watched loads an entry, and notes in the scope that a Secret was read for it.
func (e entry) watched(from *Sources, s *variables.Scope) (any, error) {
	under := *from
	ctx, use := engine.WatchSecrets(from.Context)
	under.Context = ctx
	value, err := e.load(&under, s)
	if use.Any() {
		s.LoadedSecret(e.name, err)
	}
	return value, err
}

// NotIdempotent returns why the entries may have another value in another run, or
// once the object has changed; empty if they cannot.
func (e *Entries) NotIdempotent() string {
	for _, source := range e.all() {
		if reason := source.notIdempotent(); reason != "" {
			return reason
		}
	}
	return ""
}

// Asks returns what the entries read, given the GlobalContextEntries that are known.
func (e *Entries) Asks(g Globals) []engine.Ask {
	var out []engine.Ask
	for _, source := range e.all() {
		out = append(out, source.asks(g)...)
	}
	return out
}

func (e *Entries) all() []entry {
	if e == nil {
		return nil
	}
	return e.list
}
