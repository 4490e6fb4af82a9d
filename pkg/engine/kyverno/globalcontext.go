package kyverno

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/decode"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// globalReference is data of a GlobalContextEntry, which Kyverno keeps for all
// policies and which is read here once in a run
// (pkg/engine/context/loaders/globalcontext.go).
type globalReference struct {
	name *variables.Template // "ENTRY" or "ENTRY.PROJECTION"
	path *dataPath
}

func decodeGlobalReference(n decode.Node) loader {
	f := n.Fields()
	g := &globalReference{name: decodeTemplate(f.At("name")), path: decodeDataPath(f.At("jmesPath"))}
	if f.At("name").Text() == "" {
		f.At("name").Fail("is missing")
	}
	f.Done()
	return g
}

func (g *globalReference) notIdempotent() string { return g.path.notIdempotent() }

func (g *globalReference) load(e *execution, s *variables.Scope) (any, error) {
	reference, err := renderText(g.name, s)
	if err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	name, part, _ := strings.Cut(reference, ".")
	data, err := e.globalData(name, part)
	if err != nil {
		return nil, fmt.Errorf("global context entry %s: %w", reference, err)
	}
	return g.path.pick(e, s, data)
}

// globalData is the data of an entry, or one projection of it.
func (e *execution) globalData(name, part string) (any, error) {
	if value, given, err := e.inputs().values.Entry(e.interpreter, name, part); given {
		return value, err
	}
	entry, err := e.globalEntry(name)
	if err != nil {
		return nil, err
	}
	type key struct{ name string }
	data, err := e.world.Memo.Do(e.ctx, key{name}, func(context.Context) (any, error) { return entry.read(e) })
	if err != nil || part == "" {
		return data, err
	}
	for _, p := range entry.projections {
		if p.name != part {
			continue
		}
		value, err := p.path.Search(e.interpreter, data)
		if err != nil {
			return nil, fmt.Errorf("failed to apply JMESPath %s: %w", p.path, err)
		}
		return value, nil
	}
	return nil, fmt.Errorf("it has no projection %s", part)
}

// globalEntry finds an entry among the documents of the run, or else in the cluster.
func (e *execution) globalEntry(name string) (*globalEntry, error) {
	if entry := e.inputs().entries[name]; entry != nil {
		return entry, entry.broken
	}
	if e.world.Reader == nil {
		return nil, &UnsupportedError{Field: "globalReference", Reason: "there is no GlobalContextEntry " + name + " among the policies and no cluster to read it from"}
	}
	type key struct{ name string }
	found, err := e.world.Memo.Do(e.ctx, key{name}, func(ctx context.Context) (any, error) {
		object, err := e.world.Reader.Get(ctx, engine.ObjectKey{GroupKind: globalEntryKind, Name: name})
		if err != nil {
			return nil, err
		}
		r := &decode.Report{Origin: "cluster", Policy: "GlobalContextEntry " + name, Warn: func(engine.CompileError) {}}
		return decodeGlobalEntry(decode.Node{Report: r, Value: object.Object}), nil
	})
	if apierrors.IsNotFound(err) {
		return nil, errors.New("failed to fetch entry: there is no GlobalContextEntry of this name")
	}
	if err != nil {
		return nil, err
	}
	entry, ok := found.(*globalEntry)
	if !ok {
		return nil, errors.New("failed to fetch entry")
	}
	return entry, entry.broken
}

// globalEntryKind has no version: whichever the cluster prefers has the fields
// that are read here (v2alpha1, v2beta1 and v2 share them).
//
//nolint:gochecknoglobals // an immutable value
var globalEntryKind = schema.GroupKind{Group: kyvernoGroup, Kind: "GlobalContextEntry"}

// globalEntry is a compiled GlobalContextEntry.
type globalEntry struct {
	call        *call // nil for a list of objects
	resource    schema.GroupVersionResource
	namespace   string // of the objects; empty for all
	projections []globalProjection
	broken      error // why it cannot be used
}

type globalProjection struct {
	name string
	path *jmespath.Expression
}

func decodeGlobalEntry(n decode.Node) *globalEntry {
	before := len(n.Report.Errs)
	root := n.Fields()
	root.Accept("apiVersion", "kind", "metadata", "status")
	spec := root.At("spec").Fields()
	g := &globalEntry{}
	switch call, list := spec.Has("apiCall"), spec.Has("kubernetesResource"); {
	case call == list:
		spec.Fail("needs either kubernetesResource or apiCall")
	case call:
		f := spec.At("apiCall").Fields()
		g.call = decodeCall(f)
		f.Accept("refreshInterval", "retryLimit")
		f.Done()
	default:
		g.decodeResource(spec.At("kubernetesResource").Fields())
	}
	for _, n := range spec.At("projections").List() {
		f := n.Fields()
		name, text := f.At("name").Text(), f.At("jmesPath")
		path, err := jmespath.Compile(text.Text())
		if err != nil {
			text.Fail("%w", err)
		}
		g.projections = append(g.projections, globalProjection{name, path})
		f.Done()
	}
	spec.Done()
	root.Done()
	if errs := n.Report.Errs; len(errs) > before {
		g.broken = errs[before]
	}
	return g
}

func (g *globalEntry) decodeResource(f *decode.Fields) {
	g.resource = schema.GroupVersionResource{
		Group: f.At("group").Text(), Version: f.At("version").Text(), Resource: f.At("resource").Text(),
	}
	g.namespace = f.At("namespace").Text()
	for _, key := range []string{"version", "resource"} {
		if f.At(key).Text() == "" {
			f.At(key).Fail("is missing")
		}
	}
	f.Done()
}

// read gets the data: the answer to the request, or the list of the objects.
func (g *globalEntry) read(e *execution) (any, error) {
	if g.call != nil {
		// An entry belongs to no rule, so that its request has no variables.
		r, err := g.call.render(variables.NewScope(e.interpreter, e.world.Limits))
		if err != nil {
			return nil, err
		}
		return r.answer(e)
	}
	if e.world.Reader == nil || e.world.Mapper == nil {
		return nil, &UnsupportedError{Field: "globalReference", Reason: "there is no cluster to list " + g.resource.Resource + " in"}
	}
	kind, err := e.world.Mapper.KindFor(g.resource)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for object, err := range e.world.Reader.List(e.ctx, engine.Selection{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: g.namespace,
	}) {
		if err != nil {
			return nil, err
		}
		list = append(list, object.Object)
	}
	return list, nil
}
