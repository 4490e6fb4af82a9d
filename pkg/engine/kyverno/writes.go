package kyverno

import (
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// footprint is what the patches of a rule do to any object, as far as it stands in the policy, which may be a
// broken one.
type footprint struct {
	// the fields that they name: the leaves of merges, such as "spec.containers[].image", and the paths of
	// operations
	paths         []string
	writes        engine.Writes
	readsMetadata bool // of the object
	readsMore     bool
}

// add adds what the patches do that a mutate block, or an entry of a foreach, holds.
func (f *footprint) add(block map[string]any) {
	if loops, ok := block["foreach"].([]any); ok {
		for _, entry := range loops {
			f.add(mapping(entry))
		}
		return
	}
	for _, key := range []string{"patchStrategicMerge", "overlay"} {
		if patch := block[key]; patch != nil {
			f.merge(patch, nil, false)
		}
	}
	for _, key := range []string{"patchesJson6902", "patches"} {
		if patch := block[key]; patch != nil {
			f.operations(patch)
		}
	}
}

// name adds the field at a path.
func (f *footprint) name(path []string) {
	if name := policydecode.JoinNames(path); name != "" {
		f.paths = append(f.paths, name)
	}
}

// write adds a place to which they write.
func (f *footprint) write(path []string, computed bool) {
	f.writes = append(f.writes, engine.Write{Path: path, Computed: computed})
}

// reads notes that what an object has at a path decides what is written.
func (f *footprint) reads(path []string) {
	f.readsMetadata = true
	if len(path) < 2 || path[0] != "metadata" ||
		path[1] == "annotations" && (len(path) < 3 || path[2] == engine.LastApplied) {
		f.readsMore = true
	}
}

// merge adds what a merge patch does to a value. What an anchor asks for changes nothing, but patches nest in
// it.
func (f *footprint) merge(patch any, path []string, asked bool) {
	below := func(name string) []string { return append(slices.Clone(path), name) }
	switch p := patch.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(p)) {
			anchor, name := pattern.ParseKey(key)
			if anchor != pattern.None && anchor != pattern.Add {
				f.reads(below(name))
			}
			if variables.Used(name) {
				f.write(path, true) // the map as a whole, so that its other names do not tell this one
			}
			// The key by which the element of a list is found is not a field that is named.
			asks := anchor != pattern.Add &&
				(asked || anchor != pattern.None || name == "name" && len(path) > 0 && path[len(path)-1] == "[]")
			// $deleteFromPrimitiveList/NAME
			if directive, of, ok := strings.Cut(name, "/"); ok && strings.HasPrefix(directive, "$") {
				name = of
			}
			f.merge(p[key], below(name), asks)
		}
		if len(p) == 0 {
			f.write(path, false)
		}
		return
	case []any:
		for _, item := range p {
			if element, isMap := item.(map[string]any); isMap && computesKeys(element) {
				f.write(nil, true) // a name is computed
			} else if !isMap && variables.Used(item) {
				f.write(path, true) // the paths of its items have their values
			}
			f.merge(item, below("[]"), asked)
		}
		if len(p) == 0 {
			f.write(path, false)
		}
		asked = asked || len(p) > 0
	default:
		f.write(path, variables.Used(p))
	}
	if !asked {
		f.name(path)
	}
}

// computesKeys reports whether it is computed which element of a list an element patches.
func computesKeys(element map[string]any) bool {
	for key, value := range element {
		anchor, name := pattern.ParseKey(key)
		names := anchor != pattern.None || slices.Contains([]string{
			"name", "containerPort", "port", "protocol", "mountPath", "devicePath", "ip", "type", "topologyKey",
			"whenUnsatisfiable", "key", "uid",
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
		f.write(nil, true) // a name is computed
	}
	for _, item := range list {
		operation := mapping(item)
		path, isPath := f.place(operation["path"])
		from, isFrom := f.place(operation["from"])
		if operation["op"] != "test" {
			f.name(path)
		}
		switch operation["op"] {
		case "remove":
		case "add", "replace":
			if isPath {
				f.merge(operation["value"], path, true)
			}
		case "copy", "move":
			if operation["op"] == "move" {
				f.name(from)
			}
			if isPath && isFrom && !slices.Equal(path, from) {
				f.write(path, true)
			}
			f.reads(from)
		case "test":
			f.reads(path)
		default:
			f.write(nil, true) // a name is computed
		}
	}
}

// place returns the names in a JSON pointer, to which the patch writes, and whether they are known as they
// stand.
func (f *footprint) place(pointer any) (path []string, ok bool) {
	text, isText := pointer.(string)
	ok = isText && !variables.Used(text)
	switch path = policydecode.PointerNames(text); {
	case ok:
		f.write(path, false)
	case isText:
		f.write(nil, true) // a name is computed
	}
	return path, ok
}

// secrets notes in a step whether it is confidential, and what the rule then writes.
func (e *execution) secrets(step engine.Step) engine.Step {
	f, held := &e.rule.footprint, e.subject
	e.confidential = e.confidential || e.scope.Confidential() ||
		step.Outcome != engine.NotMatched && (f.readsMore && held.IsSecret() || f.readsMetadata && held.Tainted)
	if e.confidential || step.Confidential {
		step.Confidential, step.Writes = true, f.writes
	}
	return step
}
