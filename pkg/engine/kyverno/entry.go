package kyverno

import (
	"context"
	"encoding/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Entries are the context of a rule, of a target or of a loop, in the order of the
// policy: data that a rule loads under a name, when the name is first used. They are
// immutable.
type Entries []*entry

// entry is one of them.
type entry struct {
	name string
	// load gets the data. The scope holds the entries before this one.
	load func(from *Sources, s *variables.Scope) (any, error)
	// asks returns what loading reads from the cluster or from elsewhere; nil for data that the policy
	// computes of what others have loaded.
	asks func(g Globals) []engine.Ask
	// notIdempotent is for Entries.NotIdempotent.
	notIdempotent string
}

// Sources are what the entries of a rule load their data from, in one evaluation.
type Sources struct {
	Context context.Context // of the evaluation, which Sources do not outlive
	World   *engine.World
	Globals Globals           // among the documents of the run; others are in the cluster
	Values  *variables.Values // what the user answers in place of servers
}

// answered returns an answer that the user gives in place of a server. It is treated as the server's would
// be.
func (from *Sources) answered(value any) any {
	if text, err := json.Marshal(value); err != nil || engine.MayHoldSecret(text) {
		from.World.NoteSecret()
	}
	return value
}

// DecodeEntries reads a list of entries. What is wrong goes to the node's report; an entry
// that has no source is skipped.
func DecodeEntries(n policydecode.Node) Entries {
	var out Entries
	for _, item := range n.List() {
		f := item.Fields()
		name := f.At("name").Required()
		if one := decodeSource(f); one != nil {
			one.name = name
			out = append(out, one)
		}
		f.Done()
	}
	return out
}

// Define makes the entries known to a scope, none of them loaded. One that would
// read something outside of the policy is left out where its value is given.
func (e Entries) Define(s *variables.Scope, from *Sources, given func(name string) bool) {
	for _, one := range e {
		if one.asks == nil || !given(one.name) {
			s.Define(one.name, func(s *variables.Scope) (any, error) { return one.watched(from, s) })
		}
	}
}

// watched loads an entry, and notes in the scope that a Secret was read for it.
func (e *entry) watched(from *Sources, s *variables.Scope) (any, error) {
	under := *from
	under.World = from.World.Watched()
	value, err := e.load(&under, s)
	if under.World.ReadSecret() {
		s.LoadedSecret(e.name, err)
	}
	return value, err
}

// NotIdempotent returns why the entries may have another value in another run, or
// once the object has changed; empty if they cannot.
func (e Entries) NotIdempotent() string {
	for _, source := range e {
		if source.notIdempotent != "" {
			return source.notIdempotent
		}
	}
	return ""
}

// Asks returns what the entries read, given the GlobalContextEntries that are known.
func (e Entries) Asks(g Globals) []engine.Ask {
	var out []engine.Ask
	for _, source := range e {
		if source.asks != nil {
			out = append(out, source.asks(g)...)
		}
	}
	return out
}
