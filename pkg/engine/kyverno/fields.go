package kyverno

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
)

// patchFields lists the fields that the patches of a mutate block name, those of its
// foreach included, each once: the leaves of merges and overlays, such as
// "spec.containers[].image", and the paths of operations. It reads the block as it
// is written, which may be a broken one.
func patchFields(mutate map[string]any) []string {
	var paths []string
	eachPatch(mutate, func(key string, patch any) {
		switch key {
		case "patchStrategicMerge", "overlay":
			paths = ofPattern(paths, patch, "", false)
		default:
			paths = ofOperations(paths, sequence(operationsIn(patch)))
		}
	})
	return engine.Distinct(slices.DeleteFunc(paths, func(path string) bool { return path == "" }))
}

// eachPatch visits the patches that a mutate block, or an entry of a foreach, holds as it is written, with their keys.
func eachPatch(block map[string]any, visit func(key string, patch any)) {
	if loops, ok := block["foreach"].([]any); ok {
		for _, entry := range loops {
			eachPatch(mapping(entry), visit)
		}
		return
	}
	for _, key := range []string{"patchStrategicMerge", "overlay", "patchesJson6902", "patches"} {
		if patch := block[key]; patch != nil {
			visit(key, patch)
		}
	}
}

// ofPattern appends the leaves of a merge. What an anchor asks for changes nothing, but patches nest in it.
func ofPattern(paths []string, value any, path string, asked bool) []string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			anchor, name := pattern.ParseKey(key)
			if name == "name" && strings.HasSuffix(path, "[]") && anchor == pattern.None && !asked {
				continue // the key by which the element of the list is found
			}
			asks := anchor != pattern.Add && (asked || anchor != pattern.None)
			paths = ofPattern(paths, v[key], strings.TrimPrefix(path+"."+fieldName(name), "."), asks)
		}
		return paths
	case []any:
		for _, item := range v {
			paths = ofPattern(paths, item, path+"[]", asked)
		}
		if len(v) > 0 {
			return paths
		}
	}
	if asked {
		return paths
	}
	return append(paths, path)
}

// ofOperations appends the paths of a JSON patch.
func ofOperations(paths []string, list []any) []string {
	for _, item := range list {
		operation := mapping(item)
		if operation["op"] != "test" {
			paths = append(paths, fieldPath(text(operation["path"])))
		}
		if operation["op"] == "move" {
			paths = append(paths, fieldPath(text(operation["from"])))
		}
	}
	return paths
}

// fieldPath writes a JSON pointer as other paths are written.
func fieldPath(pointer string) string {
	var out strings.Builder
	for _, segment := range tokens(strings.Trim(pointer, "/")) {
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
