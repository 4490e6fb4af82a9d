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

// footprint describes the effect of a rule's patches on any object, as far as the policy tells; the policy
// may be broken.
type footprint struct {
	// the named fields: leaves of merges, such as "spec.containers[].image", and paths of operations
	paths         []string
	writes        engine.Writes
	readsMetadata bool // of the object
	readsMore     bool
}

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

func (f *footprint) name(path []string) {
	if name := policydecode.JoinNames(path); name != "" {
		f.paths = append(f.paths, name)
	}
}

func (f *footprint) write(path []string, computed bool) {
	f.writes = append(f.writes, engine.Write{Path: path, Computed: computed})
}

// reads notes that the value at a path of the object decides what is written.
func (f *footprint) reads(path []string) {
	f.readsMetadata = true
	if len(path) < 2 || path[0] != "metadata" ||
		path[1] == "annotations" && (len(path) < 3 || path[2] == engine.LastApplied) {
		f.readsMore = true
	}
}

// merge adds a merge patch. Anchors only ask, but patches nest in their values.
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
				f.write(path, true) // the whole map, so its other names do not reveal this one
			}
			// The key that finds an element of a list is not a named field.
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

// computesKeys reports whether an element's merge keys are computed.
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

// operations adds the operations of a JSON patch, with unresolved variables.
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

// place returns the names in a JSON pointer, and whether they are known without variables.
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

// secrets notes in a step whether it is confidential, and the rule's writes.
func (e *execution) secrets(step engine.Step) engine.Step {
	f, held := &e.rule.footprint, e.subject
	e.confidential = e.confidential || e.scope.Confidential() ||
		step.Outcome != engine.NotMatched && (f.readsMore && held.IsSecret() || f.readsMetadata && held.Tainted)
	if e.confidential || step.Confidential {
		step.Confidential, step.Writes = true, f.writes
	}
	return step
}
