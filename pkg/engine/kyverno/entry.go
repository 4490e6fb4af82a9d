package kyverno

import (
	"context"
	"encoding/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Entries are the context of a rule, a target or a loop, in policy order: named data, loaded when first used.
// They are immutable.
type Entries []*entry

type entry struct {
	name string
	// load returns the data. The scope holds the entries before this one.
	load func(from *Sources, s *variables.Scope) (any, error)
	// asks returns what loading reads from outside of the policy; it may be nil.
	asks func(g Globals) []engine.Ask
	// notIdempotent is for Entries.NotIdempotent.
	notIdempotent string
}

// Sources provide the data of a rule's entries during one evaluation.
type Sources struct {
	Context context.Context // of the evaluation
	World   *engine.World
	Globals Globals           // among the documents of the run; the cluster may have others
	Values  *variables.Values // the user's answers in place of servers
}

// answered returns the user's answer, treated like a server's.
func (from *Sources) answered(value any) any {
	if text, err := json.Marshal(value); err != nil || engine.MayHoldSecret(text) {
		from.World.NoteSecret()
	}
	return value
}

// DecodeEntries reads a list of entries. Errors go to the node's report; an entry without a source is
// skipped.
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

// Define adds the entries to a scope, without loading them. An entry that reads from outside of the policy is
// omitted if the user gives its value.
func (e Entries) Define(s *variables.Scope, from *Sources, given func(name string) bool) {
	for _, one := range e {
		if one.asks == nil || !given(one.name) {
			s.Define(one.name, func(s *variables.Scope) (any, error) { return one.watched(from, s) })
		}
	}
}

// watched loads an entry, and tells the scope if a Secret was read for it.
func (e *entry) watched(from *Sources, s *variables.Scope) (any, error) {
	under := *from
	under.World = from.World.Watched()
	value, err := e.load(&under, s)
	if under.World.ReadSecret() {
		s.LoadedSecret(e.name, err)
	}
	return value, err
}

// NotIdempotent returns why the entries may have other values in another run, or after the object has
// changed; else it is empty.
func (e Entries) NotIdempotent() string {
	for _, source := range e {
		if source.notIdempotent != "" {
			return source.notIdempotent
		}
	}
	return ""
}

// Asks returns what the entries read, given the known GlobalContextEntries.
func (e Entries) Asks(g Globals) []engine.Ask {
	var out []engine.Ask
	for _, source := range e {
		if source.asks != nil {
			out = append(out, source.asks(g)...)
		}
	}
	return out
}
