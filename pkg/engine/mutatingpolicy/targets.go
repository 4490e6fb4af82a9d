package mutatingpolicy

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// isWildcard reports whether a selection names its resource by a pattern.
func isWildcard(s engine.Selection) bool {
	return s.Version == "" || slices.Contains([]string{s.Group, s.Resource, s.Subresource}, "*")
}

// subresourceOf returns the subresource through which the rules of constraints write a resource; empty for
// the object itself.
func subresourceOf(c *cel.Constraints, r schema.GroupVersionResource) string {
	covers := func(pattern, text string) bool { return pattern == "*" || pattern == text }
	for _, s := range c.Selections("") {
		if covers(s.Group, r.Group) && covers(cmp.Or(s.Version, "*"), r.Version) && covers(s.Resource, r.Resource) {
			return s.Subresource
		}
	}
	return ""
}

// objectsIn returns the objects in a value: an object, a list, or none for null.
func objectsIn(v ref.Val) ([]*unstructured.Unstructured, error) {
	converted, err := v.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("the targets are no objects: %w", err)
	}
	value := converted.(*structpb.Value).AsInterface()
	if value == nil {
		return nil, nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("must be an object or a list of objects, not %s", policydecode.TypeName(value))
	}
	items, isList := object["items"].([]any)
	if !isList {
		items = []any{object}
	}
	var out []*unstructured.Unstructured
	for i, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d] must be an object, not %s", i, policydecode.TypeName(item))
		}
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	return out, nil
}
