package library

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// GlobalContextEntry is the kind of data that Kyverno keeps for all policies. It
// has no version: whichever the cluster prefers has the fields that are read here.
//
//nolint:gochecknoglobals // an immutable value
var GlobalContextEntry = schema.GroupKind{Group: "kyverno.io", Kind: "GlobalContextEntry"}

// Project applies a JMESPath expression, in which the projections of
// GlobalContextEntries are written, to data, which it does not modify.
type Project func(w *engine.World, expression string, data any) (any, error)

// Entries are GlobalContextEntries by name.
type Entries struct {
	Project Project
	byName  map[string]*entry
}

// entry is a compiled GlobalContextEntry.
type entry struct {
	path        string // of the API server; empty for a list of objects
	service     string // a URL; empty unless it calls one
	resource    schema.GroupVersionResource
	namespace   string // of the objects; empty for all
	projections map[string]string
	broken      error // why it cannot be used
}

// Add reads an entry. Its errors are reported when it is used: the dialect
// of Kyverno's older policies, which share these entries, reports it as well.
func (e *Entries) Add(d engine.Document) {
	if e.byName == nil {
		e.byName = map[string]*entry{}
	}
	e.byName[d.Key.Name] = decodeEntry(d)
}

func decodeEntry(d engine.Document) *entry {
	r := &policydecode.Report{Origin: d.Origin, Line: d.Line, Policy: "GlobalContextEntry " + d.Key.Name, Warn: func(engine.CompileError) {}}
	spec := policydecode.Node{Report: r, Value: d.Object().Object}.Fields().At("spec").Fields()
	out := &entry{projections: map[string]string{}}
	switch call, list := spec.Has("apiCall"), spec.Has("kubernetesResource"); {
	case call == list:
		spec.Fail("needs either kubernetesResource or apiCall")
	case call:
		f := spec.At("apiCall").Fields()
		out.path, out.service = f.At("urlPath").Text(), f.At("service").Fields().At("url").Text()
		if method := f.At("method").Text(); method != "" && method != "GET" {
			f.At("method").Fail("only GET is supported here, not %s", method)
		}
	default:
		f := spec.At("kubernetesResource").Fields()
		out.resource = schema.GroupVersionResource{
			Group: f.At("group").Text(), Version: f.At("version").Text(), Resource: f.At("resource").Text(),
		}
		out.namespace = f.At("namespace").Text()
	}
	for _, n := range spec.At("projections").List() {
		f := n.Fields()
		out.projections[f.At("name").Text()] = f.At("jmesPath").Text()
	}
	out.broken = r.Err()
	return out
}

// globals answers globalContext.Get().
type globals struct{ *Session }

// GetGlobalReference is the data of an entry, or a projection of it; null for an
// entry that is not there, as in Kyverno.
func (g globals) GetGlobalReference(name, projection string) (any, error) {
	found, err := g.entry(name)
	if err != nil || found == nil {
		return nil, err
	}
	if found.broken != nil {
		return nil, found.broken
	}
	data, err := found.read(g.Session)
	if err != nil || projection == "" {
		return data, err
	}
	expression, ok := found.projections[projection]
	if !ok {
		return nil, fmt.Errorf("entry %s has no projection %s", name, projection)
	}
	return g.Entries.Project(g.world, expression, data)
}

// entry finds an entry among the documents of the run, or else in the cluster.
func (g globals) entry(name string) (*entry, error) {
	if known := g.Entries.byName[name]; known != nil {
		return known, nil
	}
	if g.world.Reader == nil {
		return nil, g.lacks("globalContext: there is no GlobalContextEntry %s among the policies and no cluster to read it from", name)
	}
	var u *unstructured.Unstructured
	var err error
	limit.Wait(g.context, func() {
		u, err = g.world.Reader.Get(g.context, engine.ObjectKey{GroupKind: GlobalContextEntry, Name: name})
	})
	if apierrors.IsNotFound(err) {
		g.warn("globalContext: there is no GlobalContextEntry %s; it counts as null", name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeEntry(engine.NewDocument(u, "cluster")), nil
}

// read gets the data: the answer to a request, or the list of the objects.
func (e *entry) read(s *Session) (any, error) {
	switch {
	case e.path != "":
		path, err := engine.ParseAPIPath(e.path)
		if err != nil {
			return nil, s.lacks("globalContext: GET %s is refused: %v", e.path, err)
		}
		if reason := path.Refusal("GET"); reason != "" {
			return nil, s.lacks("globalContext: GET %s is refused: %s", e.path, reason)
		}
		return s.raw(s.context, "GET", path.String(), nil)
	case e.service != "":
		content, err := s.fetch(engine.RemoteRequest{Method: "GET", URL: e.service})
		if err != nil {
			return nil, err
		}
		return (codec{}).Unmarshal(content)
	default:
		return e.list(s)
	}
}

func (e *entry) list(s *Session) (any, error) {
	if s.world.Reader == nil || s.world.Mapper == nil {
		return nil, s.lacks("globalContext: there is no cluster to list %s in", e.resource.Resource)
	}
	mapping, err := engine.MappingOf(s.world.Mapper, e.resource)
	if err != nil {
		return nil, err
	}
	items, err := listed(s.context, s.world, engine.Selection{
		Group: e.resource.Group, Version: e.resource.Version, Kind: mapping.GroupVersionKind.Kind, Namespace: e.namespace,
	})
	if err != nil {
		return nil, err
	}
	out := make([]any, len(items))
	for i := range items {
		out[i] = items[i].Object
	}
	return out, nil
}
