package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// bookkeeping is what the server counts on its own account. Objects are shown
// without it, unless a rule changed it.
func bookkeeping() [][]string {
	return [][]string{
		{"metadata", "managedFields"},
		{"metadata", "resourceVersion"},
		{"metadata", "generation"},
	}
}

// observed is what the report leaves out besides: the state that others keep.
func observed() [][]string { return append(bookkeeping(), []string{"status"}) }

// noise is what a diff for people leaves out besides.
func noise() [][]string {
	return append(observed(),
		[]string{"metadata", "uid"},
		[]string{"metadata", "creationTimestamp"},
		[]string{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"},
	)
}

// hidden are the paths that no rule touched.
func hidden(paths [][]string, fields []engine.FieldChange) [][]string {
	var out [][]string
	for _, path := range paths {
		touched := false
		for i := range fields {
			touched = touched || overlaps(&fields[i], path)
		}
		if !touched {
			out = append(out, path)
		}
	}
	return out
}

// overlaps tells whether a field lies at, above or below a path.
func overlaps(f *engine.FieldChange, path []string) bool {
	for i := range min(len(f.Path), len(path)) {
		if f.Path[i].FieldName == nil || *f.Path[i].FieldName != path[i] {
			return false
		}
	}
	return len(f.Path) > 0
}

func trim(u *unstructured.Unstructured, hide [][]string) *unstructured.Unstructured {
	for _, path := range hide {
		u = without(u, path)
	}
	return u
}

// without removes a field. What it leaves empty goes too, below the top level.
func without(u *unstructured.Unstructured, path []string) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	object, removed := withoutField(u.Object, path)
	if !removed {
		return u
	}
	return &unstructured.Unstructured{Object: object}
}

func withoutField(m map[string]any, path []string) (map[string]any, bool) {
	v, ok := m[path[0]]
	if !ok {
		return m, false
	}
	var rest map[string]any
	if len(path) > 1 {
		below, isMap := v.(map[string]any)
		if !isMap {
			return m, false
		}
		if rest, ok = withoutField(below, path[1:]); !ok {
			return m, false
		}
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != path[0] {
			out[k] = v
		}
	}
	if len(rest) > 0 {
		out[path[0]] = rest
	}
	return out, true
}
