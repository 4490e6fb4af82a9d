package kyverno

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// changedPaths collects the fields that patches name, each once: the leaves of
// merges and overlays, "spec.containers[].image", and the paths of operations.
type changedPaths struct{ paths []string }

func (c *changedPaths) add(path string) {
	if path != "" && !slices.Contains(c.paths, path) {
		c.paths = append(c.paths, path)
	}
}

// ofMutate looks at a mutate block, or at an entry of a foreach.
func (c *changedPaths) ofMutate(block map[string]any) {
	if loops, ok := block["foreach"].([]any); ok {
		for _, entry := range loops {
			c.ofMutate(mapping(entry))
		}
		return
	}
	for _, key := range []string{"patchStrategicMerge", "overlay"} {
		c.ofPattern(block[key], "")
	}
	switch patch := block["patchesJson6902"].(type) {
	case string:
		var list []any
		if yaml.Unmarshal([]byte(patch), &list) == nil {
			c.ofOperations(list)
		}
	case []any:
		c.ofOperations(patch)
	}
	if list, ok := block["patches"].([]any); ok {
		c.ofOperations(list)
	}
}

// ofPattern adds the leaves of a merge. Anchors that only ask change nothing.
func (c *changedPaths) ofPattern(value any, path string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			anchor, name := pattern.ParseKey(key)
			below := strings.TrimPrefix(path+"."+fieldName(name), ".")
			switch {
			case name == "name" && strings.HasSuffix(path, "[]") && anchor == pattern.None:
				// The key by which the element of the list is found.
			case anchor == pattern.None || anchor == pattern.Add:
				c.ofPattern(v[key], below)
			case isBranch(v[key]):
				// Patches nest in the values of anchors.
				c.ofNested(v[key], below)
			}
		}
	case []any:
		for _, item := range v {
			c.ofPattern(item, path+"[]")
		}
		if len(v) == 0 {
			c.add(path)
		}
	case nil:
		if path != "" {
			c.add(path)
		}
	default:
		c.add(path)
	}
}

// ofNested looks for patches below an anchor that asks.
func (c *changedPaths) ofNested(value any, path string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			anchor, name := pattern.ParseKey(key)
			below := path + "." + fieldName(name)
			if anchor == pattern.Add {
				c.ofPattern(v[key], below)
			} else if isBranch(v[key]) {
				c.ofNested(v[key], below)
			}
		}
	case []any:
		for _, item := range v {
			c.ofNested(item, path+"[]")
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

func (c *changedPaths) ofOperations(list []any) {
	for _, item := range list {
		operation := mapping(item)
		if text(operation["op"]) != "test" {
			c.add(fieldPath(text(operation["path"])))
		}
		if text(operation["op"]) == "move" {
			c.add(fieldPath(text(operation["from"])))
		}
	}
}

// fieldPath writes a JSON pointer as other paths are written.
func fieldPath(pointer string) string {
	var out strings.Builder
	for _, segment := range strings.Split(strings.Trim(pointer, "/"), "/") {
		segment = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
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
