package kyverno

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// patchFields lists the fields that the patches of a mutate block name, those of its
// foreach included, each once: the leaves of merges and overlays, such as
// "spec.containers[].image", and the paths of operations. It reads the block as it
// is written, which may be a broken one.
func patchFields(mutate map[string]any) []string {
	named := &namedFields{}
	named.ofMutate(mutate)
	return engine.Distinct(named.paths)
}

type namedFields struct{ paths []string }

func (f *namedFields) add(path string) {
	if path != "" {
		f.paths = append(f.paths, path)
	}
}

// ofMutate looks at a mutate block, or at an entry of a foreach.
func (f *namedFields) ofMutate(block map[string]any) {
	if loops, ok := block["foreach"].([]any); ok {
		for _, entry := range loops {
			f.ofMutate(mapping(entry))
		}
		return
	}
	for _, key := range []string{"patchStrategicMerge", "overlay"} {
		f.ofPattern(block[key], "")
	}
	switch patch := block["patchesJson6902"].(type) {
	case string:
		var list []any
		if yaml.Unmarshal([]byte(patch), &list) == nil {
			f.ofOperations(list)
		}
	case []any:
		f.ofOperations(patch)
	}
	if list, ok := block["patches"].([]any); ok {
		f.ofOperations(list)
	}
}

// ofPattern adds the leaves of a merge. Anchors that only ask change nothing.
func (f *namedFields) ofPattern(value any, path string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			anchor, name := pattern.ParseKey(key)
			below := strings.TrimPrefix(path+"."+fieldName(name), ".")
			switch {
			case name == "name" && strings.HasSuffix(path, "[]") && anchor == pattern.None:
				// The key by which the element of the list is found.
			case anchor == pattern.None || anchor == pattern.Add:
				f.ofPattern(v[key], below)
			case isBranch(v[key]):
				// Patches nest in the values of anchors.
				f.ofNested(v[key], below)
			}
		}
	case []any:
		for _, item := range v {
			f.ofPattern(item, path+"[]")
		}
		if len(v) == 0 {
			f.add(path)
		}
	case nil:
		if path != "" {
			f.add(path)
		}
	default:
		f.add(path)
	}
}

// ofNested looks for patches below an anchor that asks.
func (f *namedFields) ofNested(value any, path string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			anchor, name := pattern.ParseKey(key)
			below := path + "." + fieldName(name)
			if anchor == pattern.Add {
				f.ofPattern(v[key], below)
			} else if isBranch(v[key]) {
				f.ofNested(v[key], below)
			}
		}
	case []any:
		for _, item := range v {
			f.ofNested(item, path+"[]")
		}
	}
}

func isBranch(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func (f *namedFields) ofOperations(list []any) {
	for _, item := range list {
		operation := mapping(item)
		path, _ := operation["path"].(string)
		from, _ := operation["from"].(string)
		if operation["op"] != "test" {
			f.add(fieldPath(path))
		}
		if operation["op"] == "move" {
			f.add(fieldPath(from))
		}
	}
}

// fieldPath writes a JSON pointer as other paths are written.
func fieldPath(pointer string) string {
	var out strings.Builder
	for _, segment := range strings.Split(strings.Trim(pointer, "/"), "/") {
		segment = jsonpointer.Unescape(segment)
		_, err := strconv.Atoi(segment)
		switch {
		case err == nil || segment == "-" || strings.Contains(segment, "{{elementIndex"):
			out.WriteString("[" + segment + "]")
		default:
			if out.Len() > 0 {
				out.WriteByte('.')
			}
			out.WriteString(fieldName(segment))
		}
	}
	return out.String()
}

// fieldName quotes a name that holds what separates names.
func fieldName(name string) string {
	if strings.ContainsAny(name, "./[]") && !strings.Contains(name, "{{") {
		return `"` + name + `"`
	}
	return name
}
