package contextentry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// globalReference is data of a GlobalContextEntry, which Kyverno keeps for all
// policies and which is read here once in a run
// (pkg/engine/context/loaders/globalcontext.go).
type globalReference struct {
	written string              // the name, as the policy has it
	name    *variables.Template // "ENTRY" or "ENTRY.PROJECTION"
	path    *dataPath
}

func decodeGlobalReference(n policydecode.Node) source {
	f := n.Fields()
	g := &globalReference{written: f.At("name").Required(), name: variables.Decode(f.At("name")), path: decodeDataPath(f.At("jmesPath"))}
	f.Done()
	return g
}

// asks returns what the entry reads. One that is not among the documents of the run is
// read from the cluster, and what it reads is not known.
func (g *globalReference) asks(all Globals) []engine.Ask {
	name, _, _ := strings.Cut(g.written, ".")
	what := "GlobalContextEntry " + name
	if entry := all[name]; entry != nil {
		return []engine.Ask{entry.ask(what)}
	}
	s := engine.Selection{Group: globalKind.Group, Kind: globalKind.Kind, Name: variables.Plain(name)}
	return []engine.Ask{{Of: engine.AskObjects, What: what, Objects: s}}
}

func (g *globalReference) notIdempotent() string { return g.path.notIdempotent() }

func (g *globalReference) load(from *Sources, s *variables.Scope) (any, error) {
	reference, err := renderText(g.name, s)
	if err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	name, part, _ := strings.Cut(reference, ".")
	data, err := from.globalData(s, name, part)
	if err != nil {
		return nil, fmt.Errorf("global context entry %s: %w", reference, err)
	}
	return g.path.pick(s, data)
}

// globalData is the data of an entry, or one projection of it.
func (from *Sources) globalData(s *variables.Scope, name, part string) (any, error) {
	in := s.Interpreter()
	if value, given, err := from.Values.Entry(in, name, part); given {
		return from.answered(value), err
	}
	entry, err := from.global(name)
	if err != nil {
		return nil, err
	}
	type key struct{ name string }
	data, err := from.World.Memo.Do(from.Context, key{name}, func(ctx context.Context) (any, error) {
		under := *from
		under.Context = ctx
		return entry.read(&under, in)
	})
	if err != nil || part == "" {
		return data, err
	}
	for _, p := range entry.projections {
		if p.name != part {
			continue
		}
		value, err := p.path.Search(in, data)
		s.Picked(p.path)
		if err != nil {
			return nil, fmt.Errorf("failed to apply JMESPath %s: %w", p.path, err)
		}
		return value, nil
	}
	return nil, fmt.Errorf("it has no projection %s", part)
}

// global finds an entry among the documents of the run, or else in the cluster.
func (from *Sources) global(name string) (*global, error) {
	if entry := from.Globals[name]; entry != nil {
		return entry, entry.broken
	}
	if from.World.Reader == nil {
		return nil, &jmespath.UnsupportedError{Field: "globalReference", Reason: "there is no GlobalContextEntry " + name + " among the policies and no cluster to read it from"}
	}
	type key struct{ name string }
	found, err := from.ask(key{name}, func(ctx context.Context) (any, error) {
		object, err := from.World.Reader.Get(ctx, engine.ObjectKey{GroupKind: globalKind, Name: name})
		if err != nil {
			return nil, err
		}
		r := &policydecode.Report{Origin: "cluster", Policy: "GlobalContextEntry " + name, Warn: func(engine.CompileError) {}}
		return decodeGlobal(policydecode.Node{Report: r, Value: object.Object}), nil
	})
	if apierrors.IsNotFound(err) {
		return nil, errors.New("failed to fetch entry: there is no GlobalContextEntry of this name")
	}
	if err != nil {
		return nil, err
	}
	entry, ok := found.(*global)
	if !ok {
		return nil, errors.New("failed to fetch entry")
	}
	return entry, entry.broken
}
