package input

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strconv"
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

// ErrNotObject is wrapped by the Error of a document that is well-formed but no
// Kubernetes object: it is no mapping, or it names no apiVersion or no kind.
var ErrNotObject = errors.New("not a Kubernetes object")

// Error says what is wrong with a manifest, and where.
type Error struct {
	Path string // the file, the URL without its password, or "stdin"
	Line int    // counted from 1 in the file; 0 where the file as a whole is meant
	Err  error
}

// Error is "path:line: reason".
func (e *Error) Error() string { return e.Origin() + ": " + e.Err.Error() }

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.Err }

// Origin is the place, in the words of engine.Document.
func (e *Error) Origin() string { return origin(e.Path, e.Line) }

func origin(path string, line int) string {
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(line)
}

// at completes an error with the path of the manifest that it happened in.
func at(path string, err error) *Error {
	var placed *Error
	if errors.As(err, &placed) {
		return &Error{Path: path, Line: placed.Line, Err: placed.Err}
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		err = file.Err // which has no second path
	}
	return &Error{Path: path, Err: err}
}

// mayBeSecret reports whether a text may be that of a Secret, or of what makes one. It is asked where the text cannot be
// decoded, so that nobody knows what it is.
func mayBeSecret(text []byte) bool {
	text = bytes.ToLower(text)
	return bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("stringdata"))
}

// quoted is what an error quotes of a document.
func quoted(text string, secret bool) string {
	if secret {
		return engine.HiddenValue
	}
	return text
}
