package kyverno

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Globals are GlobalContextEntries by name.
type Globals map[string]*global

// Add reads a GlobalContextEntry. Its errors go to the node's report, and fail every rule that refers to the
// entry.
func (g Globals) Add(name string, n policydecode.Node) { g[name] = decodeGlobal(n) }

// global is a compiled GlobalContextEntry.
type global struct {
	*policydecode.GlobalContext[call, *jmespath.Expression]
}

func decodeGlobal(n policydecode.Node) *global {
	return &global{policydecode.DecodeGlobalContext(n, decodeCall, variables.DecodeExpression)}
}

func (g *global) ask(what string) engine.Ask {
	if g.Call != nil {
		return g.Call.ask(what + ": ")
	}
	return engine.Ask{Of: engine.AskObjects, What: what, Objects: g.Lists()}
}

// fetch returns the answer to the rendered request of the Call, or the list of objects.
func (g *global) fetch(from *Sources, request engine.RemoteRequest) (any, error) {
	if g.Call != nil {
		return g.Call.answer(from, request)
	}
	if from.World.Reader == nil || from.World.Mapper == nil {
		return nil, &engine.UnsupportedError{
			Field: "globalReference", Err: fmt.Errorf("there is no cluster to list %s in", g.Lists().Resource),
		}
	}
	all, err := g.Selection(from.World.Mapper)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for object, err := range from.World.Reader.List(from.Context, all) {
		if err != nil {
			return nil, err
		}
		list = append(list, object.Object)
	}
	return list, nil
}

// decodeGlobalReference reads data of a GlobalContextEntry, or a projection of it ("ENTRY.PROJECTION").
// Kyverno keeps it for all policies; here it is read once per run
// (pkg/engine/context/loaders/globalcontext.go).
func decodeGlobalReference(f *policydecode.Fields) *entry {
	f.At("name").Required()
	name, path := decodeText(f.At("name"), "name: "), decodeDataPath(f.At("jmesPath"))
	load := func(from *Sources, s *variables.Scope) (any, error) {
		reference, err := name.render(s)
		if err != nil {
			return nil, err
		}
		name, part, _ := strings.Cut(reference, ".")
		data, err := from.globalData(s, name, part)
		if err != nil {
			return nil, fmt.Errorf("global context entry %s: %w", reference, err)
		}
		return path.pick(s, data)
	}
	// The reads of an entry that only the cluster has are unknown.
	asks := func(all Globals) []engine.Ask {
		name, _, _ := strings.Cut(name.written, ".")
		what := "GlobalContextEntry " + name
		if entry := all[name]; entry != nil {
			return []engine.Ask{entry.ask(what)}
		}
		s := engine.Selection{
			Group: policydecode.GlobalContextKind.Group,
			Kind:  policydecode.GlobalContextKind.Kind, Name: variables.Plain(name),
		}
		return []engine.Ask{{Of: engine.AskObjects, What: what, Objects: s}}
	}
	return &entry{load: load, asks: asks, notIdempotent: path.notIdempotent}
}

func (from *Sources) globalData(s *variables.Scope, name, part string) (any, error) {
	in := s.Interpreter()
	if value, given, err := from.Values.Entry(in, name, part); given {
		return from.answered(value), err
	}
	entry, err := from.global(name)
	if err != nil {
		return nil, err
	}
	var request engine.RemoteRequest
	if entry.Call != nil { // rendered here: the time of Once does not count for the rule
		// An entry belongs to no rule, so its request has no variables.
		if request, err = entry.Call.render(variables.NewScope(in)); err != nil {
			return nil, err
		}
	}
	type key struct{ name string }
	data, err := engine.Once(from.Context, from.World, key{name}, func(w *engine.World) (any, error) {
		under := *from
		under.World = w
		return entry.fetch(&under, request)
	})
	if err != nil || part == "" {
		return data, err
	}
	if path := entry.Projections[part]; path != nil {
		return search(path, s, data)
	}
	return nil, fmt.Errorf("it has no projection %s", part)
}

// global finds an entry among the documents of the run, or else in the cluster.
func (from *Sources) global(name string) (*global, error) {
	if entry := from.Globals[name]; entry != nil {
		return entry, entry.Broken
	}
	if from.World.Reader == nil {
		return nil, &engine.UnsupportedError{Field: "globalReference", Err: errors.New("there is no GlobalContextEntry " + name + " among the policies and no cluster to read it from")}
	}
	type key struct{ name string }
	entry, err := engine.Once(from.Context, from.World, key{name}, func(w *engine.World) (*global, error) {
		object, err := w.Reader.Get(from.Context,
			engine.ObjectKey{GroupKind: policydecode.GlobalContextKind, Name: name})
		if err != nil {
			return nil, err
		}
		r := &policydecode.Report{Origin: "cluster", Policy: "GlobalContextEntry " + name}
		return decodeGlobal(policydecode.Node{Report: r, Value: object.Object}), nil
	})
	if apierrors.IsNotFound(err) {
		return nil, errors.New("failed to fetch entry: there is no GlobalContextEntry of this name")
	}
	if err != nil {
		return nil, err
	}
	return entry, entry.Broken
}
