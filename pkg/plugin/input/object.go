package input

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// value is one decoded document.
type value struct {
	content any // map[string]any, []any, string, int64, float64, bool or nil
	line    int
	items   []int                                     // the line of each element of the top-level "items", if it is a list
	locate  func(document int) func(field string) int // nil where the lines of fields are not wanted
}

// objects yields the objects of a part.
func (p part) objects(path string, input Files, aliases *int) iter.Seq2[engine.Document, error] {
	return func(yield func(engine.Document, error) bool) {
		values, err := p.decode(aliases)
		if err != nil {
			yield(engine.Document{}, at(path, err))
			return
		}
		var locate func(int) func(string) int
		if input.Lines {
			locate = p.locator()
		}
		for _, v := range values {
			if v.content == nil {
				continue
			}
			object, _ := v.content.(map[string]any)
			if object != nil && input.Kind != "" && object["apiVersion"] == nil && object["kind"] == nil {
				object["apiVersion"], object["kind"] = input.APIVersion, input.Kind
			}
			if v.locate = locate; !v.flatten(path, yield) {
				return
			}
		}
	}
}

// decode decodes a part. Aliases is what YAML aliases may still expand to in the file.
func (p part) decode(aliases *int) ([]value, error) {
	if p.decoded != nil {
		return []value{*p.decoded}, nil
	}
	if !looksLikeJSON(p.text) {
		return decodeYAML(p, aliases)
	}
	values, jsonErr := decodeJSON(p)
	var twice *duplicateError
	if jsonErr == nil || errors.As(jsonErr, &twice) {
		return values, jsonErr
	}
	// YAML's flow style may look like JSON and allow more, such as comments.
	values, err := decodeYAML(p, aliases)
	if err != nil {
		return nil, jsonErr
	}
	return values, nil
}

// flatten yields the object, or the objects of a list, and reports whether the
// caller wants more.
func (v value) flatten(path string, yield func(engine.Document, error) bool) bool {
	object, isMap := v.content.(map[string]any)
	if !isMap {
		return yield(engine.Document{}, &Error{path, v.line, fmt.Errorf("%w: expected a mapping", ErrNotObject)})
	}
	items, isList := listItems(object)
	if !isList {
		if err := validate(object); err != nil {
			if errors.Is(err, ErrNotObject) && isKustomization(path) {
				err = fmt.Errorf("%w: build the directory of a kustomization with -k", err)
			}
			return yield(engine.Document{}, &Error{path, v.line, err})
		}
		d := engine.NewDocument(&unstructured.Unstructured{Object: object}, origin(path, v.line))
		if v.locate != nil {
			d.Line = v.locate(v.line)
		}
		return yield(d, nil)
	}
	for i, item := range items {
		element := value{content: typed(item, object), line: v.line, locate: v.locate}
		if i < len(v.items) {
			element.line = v.items[i]
		}
		if !element.flatten(path, yield) {
			return false
		}
	}
	return true
}

// listItems returns the elements of a `List` or of a typed list such as
// PodList. A kind that ends in List is an object like any other as long as it
// has no list of items.
func listItems(object map[string]any) ([]any, bool) {
	kind, _ := object["kind"].(string)
	if !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	items, isList := object["items"].([]any)
	return items, isList || (kind == "List" && object["items"] == nil)
}

// typed gives an element of a typed list the type that the list implies: the
// API server leaves it out of the elements.
func typed(item any, list map[string]any) any {
	object, isMap := item.(map[string]any)
	kind, _ := list["kind"].(string)
	if !isMap || kind == "List" || object["kind"] != nil || object["apiVersion"] != nil {
		return item
	}
	object["kind"], object["apiVersion"] = strings.TrimSuffix(kind, "List"), list["apiVersion"]
	return object
}

func validate(object map[string]any) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if text, _ := object[field].(string); text == "" {
			return fmt.Errorf("%w: it has no %s", ErrNotObject, field)
		}
	}
	if _, isMap := object["metadata"].(map[string]any); !isMap && object["metadata"] != nil {
		return errors.New("metadata is not a mapping")
	}
	return nil
}
