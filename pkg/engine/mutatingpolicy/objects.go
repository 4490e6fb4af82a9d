package mutatingpolicy

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types/ref"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

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
