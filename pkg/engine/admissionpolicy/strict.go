package admissionpolicy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
)

// decodeError is the result of a JSON patch that an API server cannot decode. It
// refuses the object then, whatever the failurePolicy (dispatch in
// pkg/admission/plugin/policy/mutating of k8s.io/apiserver).
type decodeError struct{ Unknown []string }

// Error is the server's text.
func (e *decodeError) Error() string {
	parts := make([]string, len(e.Unknown))
	for i, path := range e.Unknown {
		parts[i] = fmt.Sprintf("unknown field %q", path)
	}
	return "strict decoding error: " + strings.Join(parts, ", ")
}

// decodable checks the result of a JSON patch as an API server does, which decodes built-in
// kinds strictly: a field that the kind does not have is an error. Fields that were there
// before the patch do not count. A kind without a schema is not checked.
func (r *run) decodable(before, after map[string]any) error {
	u := &unstructured.Unstructured{Object: before}
	if !diff.BuiltIn(u.GroupVersionKind().Group) {
		return nil
	}
	answer := r.readTypes()
	if answer.err != nil || answer.types == nil {
		return nil // a rule that needs no schema goes on without
	}
	empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	typed, err := answer.types.ObjectToTyped(empty)
	if err != nil {
		return nil
	}
	unknown := func(object map[string]any) []string {
		w := unknownFields{schema: typed.Schema()}
		w.in("", typed.TypeRef(), object)
		return w.paths
	}
	added := unknown(after)
	if len(added) > 0 {
		known := unknown(before)
		added = slices.DeleteFunc(added, func(path string) bool { return slices.Contains(known, path) })
	}
	if len(added) == 0 {
		return nil
	}
	return &decodeError{Unknown: added}
}

// unknownFields collects the paths of fields that a schema does not have.
type unknownFields struct {
	schema *schema.Schema
	paths  []string
}

func (w *unknownFields) in(path string, ref schema.TypeRef, value any) {
	atom, ok := w.schema.Resolve(ref)
	if !ok {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if atom.Map == nil {
			return // of another type than the schema's: reported elsewhere
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if field, ok := atom.Map.FindField(name); ok {
				w.in(at, field.Type, value[name])
			} else if atom.Map.ElementType != (schema.TypeRef{}) {
				w.in(at, atom.Map.ElementType, value[name])
			} else {
				w.paths = append(w.paths, at)
			}
		}
	case []any:
		if atom.List == nil {
			return
		}
		for i, item := range value {
			w.in(fmt.Sprintf("%s[%d]", path, i), atom.List.ElementType, item)
		}
	}
}
