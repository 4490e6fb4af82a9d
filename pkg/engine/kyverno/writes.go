package kyverno

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// footprint is what the patches of a rule do to any object, as far as it stands in the policy: where it writes what, and whether it reads what
// the object has.
type footprint struct {
	writes        engine.Writes
	readsMetadata bool // of the object
	readsMore     bool
}

// reads notes that what an object has at a path decides what is written.
func (f *footprint) reads(path []string) {
	f.readsMetadata = true
	if len(path) < 2 || path[0] != "metadata" || path[1] == "annotations" && (len(path) < 3 || path[2] == engine.LastApplied) {
		f.readsMore = true
	}
}

// patch adds what a patch does, by the key under which it stands.
func (f *footprint) patch(key string, patch any) {
	switch key {
	case "patchStrategicMerge", "overlay":
		f.merge(patch, &f.writes, nil)
	default:
		f.operations(patch)
	}
}

// merge adds what a merge patch does to a value.
func (f *footprint) merge(patch any, to *engine.Writes, path []string) {
	switch p := patch.(type) {
	case map[string]any:
		for key, value := range p {
			anchor, name := pattern.ParseKey(key)
			if variables.Used(name) {
				to.Add(nil) // the map as a whole, so that its other names do not tell this one
				return
			}
			below := append(slices.Clone(path), name)
			if anchor != pattern.None && anchor != pattern.Add {
				f.reads(below)
			}
			if directive, of, ok := strings.Cut(name, "/"); ok && strings.HasPrefix(directive, "$") { // $deleteFromPrimitiveList/NAME
				name = of
			}
			f.merge(value, to.Field(name), below)
		}
	case []any:
		for _, item := range p {
			if element, isMap := item.(map[string]any); isMap && computesKeys(element) {
				f.writes.Add(nil) // a name is computed
				return
			}
			if _, isMap := item.(map[string]any); !isMap && variables.Used(item) {
				to.Add(nil) // the paths of its items have their values
				return
			}
			f.merge(item, to.Item(), path)
		}
	default:
		if variables.Used(p) {
			to.Add(nil)
		}
	}
}

// computesKeys reports whether it is computed which element of a list an element patches.
func computesKeys(element map[string]any) bool {
	for key, value := range element {
		anchor, name := pattern.ParseKey(key)
		names := anchor != pattern.None || slices.Contains([]string{
			"name", "containerPort", "port", "protocol", "mountPath", "devicePath", "ip", "type", "topologyKey", "whenUnsatisfiable", "key", "uid",
		}, name)
		if names && variables.Used(value) {
			return true
		}
	}
	return false
}

// operations adds what the operations of a JSON patch do, whose variables are left where they stand.
func (f *footprint) operations(patch any) {
	list, ok := operationsIn(patch).([]any)
	if !ok {
		f.writes.Add(nil) // a name is computed
	}
	for _, item := range list {
		operation := mapping(item)
		path, isPath := f.at(operation["path"])
		from, isFrom := f.at(operation["from"])
		switch operation["op"] {
		case "remove":
		case "add", "replace":
			if isPath {
				f.merge(operation["value"], path, nil)
			}
		case "copy", "move":
			if isPath && isFrom && path != from {
				path.Add(nil)
			}
			f.reads(tokens(text(operation["from"])))
		case "test":
			f.reads(tokens(text(operation["path"])))
		default:
			f.writes.Add(nil) // a name is computed
		}
	}
}

// at returns what is written at a JSON pointer. A number may be the index of a list, or a name.
func (f *footprint) at(pointer any) (at *engine.Writes, ok bool) {
	text, isText := pointer.(string)
	if !isText {
		return nil, false
	}
	if variables.Used(text) {
		f.writes.Add(nil) // a name is computed
		return nil, false
	}
	at = &f.writes
	for _, token := range tokens(text) {
		if _, err := strconv.Atoi(token); err == nil || token == "-" {
			item := at.Item()
			if at.Fields == nil {
				at.Fields = map[string]*engine.Writes{}
			}
			at.Fields[token] = item
			at = item
			continue
		}
		at = at.Field(token)
	}
	return at, true
}

// tokens are the names in a JSON pointer.
func tokens(pointer string) []string {
	out := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range out {
		out[i] = jsonpointer.Unescape(out[i])
	}
	return out
}

// secrets notes in a step whether it is confidential, and what the rule then writes.
func (e *execution) secrets(step engine.Step) engine.Step {
	f, held := &e.rule.footprint, e.subject
	e.confidential = e.confidential || e.scope.Confidential() ||
		step.Outcome != engine.NotMatched && (f.readsMore && held.IsSecret() || f.readsMetadata && held.Tainted)
	if e.confidential || step.Confidential {
		step.Confidential, step.Writes = true, &f.writes
	}
	return step
}
