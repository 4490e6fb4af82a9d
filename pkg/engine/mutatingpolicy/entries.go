package mutatingpolicy

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Project applies a JMESPath projection of a GlobalContextEntry to data, which is not modified.
type Project func(w *engine.World, expression string, data any) (any, error)

// Entries are GlobalContextEntries by name.
type Entries struct {
	Project Project
	byName  map[string]*entry
}

type entry struct {
	*policydecode.GlobalContext[request, string]
}

// request is an entry's GET request.
type request struct {
	path    string // on the API server; empty for a service
	service string // a URL
}

// Add reads an entry. Its errors are reported on use: the dialect of Kyverno's older policies, which share
// these entries, reports them as well.
func (e *Entries) Add(d engine.Document) {
	if e.byName == nil {
		e.byName = map[string]*entry{}
	}
	e.byName[d.Key.Name] = decodeEntry(d)
}

func decodeEntry(d engine.Document) *entry {
	r := &policydecode.Report{Origin: d.Origin, Line: d.Line, Policy: "GlobalContextEntry " + d.Key.Name}
	return &entry{policydecode.DecodeGlobalContext(policydecode.Node{Report: r, Value: d.Object().Object},
		decodeRequest, policydecode.Node.Text)}
}

func decodeRequest(f *policydecode.Fields) *request {
	if method := f.At("method").Text(); method != "" && method != "GET" {
		f.At("method").Fail("only GET is supported here, not %s", method)
	}
	return &request{path: f.At("urlPath").Text(), service: f.At("service").Fields().At("url").Text()}
}

// GetGlobalReference returns the data of an entry or of its projection; null for a missing entry, as in
// Kyverno.
func (s *Session) GetGlobalReference(name, projection string) (any, error) {
	found, err := s.entry(name)
	if err != nil || found == nil {
		return nil, err
	}
	if found.Broken != nil {
		return nil, found.Broken
	}
	data, err := found.fetch(s)
	if err != nil || projection == "" {
		return data, err
	}
	expression, ok := found.Projections[projection]
	if !ok {
		return nil, fmt.Errorf("entry %s has no projection %s", name, projection)
	}
	return s.Entries.Project(s.world, expression, data)
}

// entry finds an entry among the documents of the run, or else in the cluster.
func (s *Session) entry(name string) (*entry, error) {
	if known := s.Entries.byName[name]; known != nil {
		return known, nil
	}
	if s.world.Reader == nil {
		return nil, s.lacks("globalContext: there is no GlobalContextEntry %s among the policies and no cluster to read it from", name)
	}
	u, err := s.world.Get(s.context, engine.ObjectKey{GroupKind: policydecode.GlobalContextKind, Name: name})
	if apierrors.IsNotFound(err) {
		s.warn("globalContext: there is no GlobalContextEntry %s; it counts as null", name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeEntry(engine.NewDocument(u, "cluster")), nil
}

func (e *entry) fetch(s *Session) (any, error) {
	if e.Call == nil {
		return e.list(s)
	}
	if e.Call.path == "" {
		content, err := s.fetch(engine.RemoteRequest{Method: "GET", URL: e.Call.service})
		if err != nil {
			return nil, err
		}
		return (codec{}).Unmarshal(content)
	}
	path, err := engine.ParseAPIPath(e.Call.path)
	if err != nil {
		return nil, s.lacks("globalContext: GET %s is refused: %v", e.Call.path, err)
	}
	if reason := path.Refusal("GET"); reason != "" {
		return nil, s.lacks("globalContext: GET %s is refused: %s", e.Call.path, reason)
	}
	return s.raw(s.context, "GET", path.String(), nil)
}

func (e *entry) list(s *Session) (any, error) {
	if s.world.Reader == nil || s.world.Mapper == nil {
		return nil, s.lacks("globalContext: there is no cluster to list %s in", e.Lists().Resource)
	}
	all, err := e.Selection(s.world.Mapper)
	if err != nil {
		return nil, err
	}
	items, err := listObjects(s.context, s.world, all)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(items))
	for i := range items {
		out[i] = items[i].Object
	}
	return out, nil
}
