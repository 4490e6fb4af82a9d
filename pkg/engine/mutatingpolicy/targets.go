package mutatingpolicy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/cel/match"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// target is one resource that targetMatchConstraints name.
type target struct {
	resource    schema.GroupVersionResource
	subresource string
	names       []string // of the objects; a single empty one stands for all
	// labels selects objects by the objectSelector. It is never nil: constraints
	// filter what is there, and a name in them is no object that has to exist.
	labels *metav1.LabelSelector
}

// wildcard reports whether the resource is a pattern.
func (t target) wildcard() bool {
	return slices.Contains([]string{t.resource.Group, t.resource.Version, t.resource.Resource, t.subresource}, "*")
}

// targetsOf lists the resources that constraints name.
func targetsOf(c *match.Constraints) []target {
	selected := &metav1.LabelSelector{}
	if c.Objects != nil {
		selected = c.Objects.Exact()
	}
	var out []target
	for i := range c.Rules {
		r := &c.Rules[i]
		names := r.Names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range r.Groups {
			for _, version := range r.Versions {
				for _, x := range r.Resources {
					out = append(out, target{
						resource:    schema.GroupVersionResource{Group: group, Version: version, Resource: x.Name},
						subresource: x.Subresource, names: names, labels: selected,
					})
				}
			}
		}
	}
	return out
}

// subresourceOf returns the subresource through which the rules of constraints want a
// resource to be written; empty for the object itself.
func subresourceOf(c *match.Constraints, r schema.GroupVersionResource) string {
	covers := func(pattern, text string) bool { return pattern == "*" || pattern == text }
	for _, t := range targetsOf(c) {
		if covers(t.resource.Group, r.Group) && covers(t.resource.Version, r.Version) && covers(t.resource.Resource, r.Resource) {
			return t.subresource
		}
	}
	return ""
}

// withoutLabels returns constraints without their objectSelector.
func withoutLabels(c *match.Constraints) *match.Constraints {
	out := *c
	out.Objects = nil
	return &out
}

// objectsIn are the objects that a value holds: an object, or a list of them. Null
// holds none.
func objectsIn(v ref.Val) ([]*unstructured.Unstructured, error) {
	converted, err := v.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("the targets are no objects: %w", err)
	}
	content, err := json.Marshal(converted)
	if err != nil {
		return nil, fmt.Errorf("the targets are no objects: %w", err)
	}
	var value any
	if err := utiljson.Unmarshal(content, &value); err != nil {
		return nil, fmt.Errorf("the targets are no objects: %w", err)
	}
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
