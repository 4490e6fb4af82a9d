package faultproxy

import (
	"encoding/json"
	"net/http"
	"slices"
)

// Write is a request to write that reached the server.
type Write struct {
	Method, Path string
	// Manager is the fieldManager that the request names.
	Manager string
	DryRun  bool
	// Status, UID and ResourceVersion are the server's answer, which the client need
	// not have got.
	Status               int
	UID, ResourceVersion string
}

// Writes lists what reached the server, dry runs included, in the order of the
// server's answers.
func (p *Proxy) Writes() []Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes)
}

// version is one state of an object.
type version struct {
	resourceVersion string
	answer          answered
}

// remembered bounds how far back a stale read goes.
const remembered = 2

// record notes what the server answered.
func (p *Proxy) record(r *http.Request, a answered) {
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(a.body, &object) // what is no object has no version
	id := object.Metadata
	dryRun := r.URL.Query().Has("dryRun")
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method != http.MethodGet {
		p.writes = append(p.writes, Write{
			Method: r.Method, Path: r.URL.Path, Manager: r.URL.Query().Get("fieldManager"), DryRun: dryRun,
			Status: a.status, UID: id.UID, ResourceVersion: id.ResourceVersion,
		})
	}
	if a.status != http.StatusOK || dryRun || id.UID == "" {
		return
	}
	known := p.versions[r.URL.Path]
	if slices.ContainsFunc(known, func(v version) bool { return v.resourceVersion == id.ResourceVersion }) {
		return
	}
	known = append(known, version{id.ResourceVersion, a})
	p.versions[r.URL.Path] = known[max(0, len(known)-remembered):]
}

// older is a version of an object before the one that the server answers with.
func (p *Proxy) older(r *http.Request, now answered) (answered, bool) {
	if r.Method != http.MethodGet || now.status != http.StatusOK {
		return answered{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.versions[r.URL.Path]
	if len(known) < remembered {
		return answered{}, false
	}
	return known[0].answer, true
}
