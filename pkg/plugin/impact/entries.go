package impact

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// entry is one entry of managedFields, as it was decoded: converting and parsing it
// would cost more than evaluating the object.
type entry struct {
	manager, subresource string
	operation            metav1.ManagedFieldsOperationType
	fields               map[string]any // a FieldsV1
}

func entriesOf(u *unstructured.Unstructured) []entry {
	list, _ := valueAt(u.Object, "metadata", "managedFields").([]any)
	out := make([]entry, 0, len(list))
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		operation := textOf(m["operation"])
		fields, _ := m["fieldsV1"].(map[string]any)
		out = append(out, entry{
			manager: textOf(m["manager"]), subresource: textOf(m["subresource"]),
			operation: metav1.ManagedFieldsOperationType(operation), fields: fields,
		})
	}
	return out
}

// owner is "argocd (Apply)" or "kube-controller-manager (Update of scale)".
func (e *entry) owner() string {
	if e.subresource != "" {
		return e.manager + " (" + string(e.operation) + " of " + e.subresource + ")"
	}
	return e.manager + " (" + string(e.operation) + ")"
}

// named walks down a path as far as the entry names it: n elements, below which it
// names fields.
func (e *entry) named(p fieldpath.Path) (n int, fields map[string]any) {
	fields = e.fields
	for ; n < len(p); n++ {
		name, err := fieldpath.SerializePathElement(p[n])
		below, ok := fields[name].(map[string]any)
		if err != nil || !ok {
			break
		}
		fields = below
	}
	return n, fields
}

// holds finds what the entry owns of a path in an object: the path itself, or what
// above it is owned as a whole; nil where it owns neither.
func (e *entry) holds(object map[string]any, p fieldpath.Path) fieldpath.Path {
	n, fields := e.named(p)
	switch {
	case n == len(p):
		return p
	case n > 0 && len(fields) == 0:
		return whole(object, p[:n:n])
	}
	return nil
}

// has reports whether the entry names the path itself.
func (e *entry) has(p fieldpath.Path) bool {
	n, fields := e.named(p)
	_, whole := fields["."]
	return n == len(p) && (whole || len(fields) == 0)
}

// whole is the path of an owned leaf, or nil where the leaf was an empty map when
// it was set: what others put into it is theirs.
func whole(object map[string]any, p fieldpath.Path) fieldpath.Path {
	v, ok := diff.Lookup(object, p)
	if m, isMap := v.(map[string]any); !ok || (isMap && len(m) == 0) {
		return nil
	}
	return p
}

// elements calls f for each keyed list element that the entry owns.
func elements(fields map[string]any, path fieldpath.Path, f func(fieldpath.Path)) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		below, ok := fields[name].(map[string]any)
		if !ok || name == "." {
			continue
		}
		e, err := fieldpath.DeserializePathElement(name)
		if err != nil {
			continue
		}
		p := append(path[:len(path):len(path)], e)
		if _, whole := below["."]; e.Key != nil && (whole || len(below) == 0) {
			f(p)
		}
		elements(below, p, f)
	}
}
