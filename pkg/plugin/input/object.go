package input

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// value is one decoded document.
type value struct {
	content any // map[string]any, []any, string, int64, float64, bool or nil
	line    int
	// the line of each element of the top-level "items", if it is a list
	items  []int
	locate func(document int) func(field string) int // nil if the lines of fields are not wanted
}

// objects yields the objects of a part.
func (p part) objects(path string, input Files, aliases *int) iter.Seq2[engine.Document, error] {
	return func(yield func(engine.Document, error) bool) {
		values, err := p.decode(aliases)
		if err != nil {
			yield(engine.Document{}, errorAt(path, err))
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

// decode decodes a part. Aliases is the rest of the file's budget for YAML aliases.
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

// flatten yields the object, or the objects of a list, and reports whether the caller wants more.
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

// listItems returns the elements of a `List` or of a typed list such as PodList. A kind that ends in List
// without a list of items is an ordinary object.
func listItems(object map[string]any) ([]any, bool) {
	kind, _ := object["kind"].(string)
	if !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	items, isList := object["items"].([]any)
	return items, isList || (kind == "List" && object["items"] == nil)
}

// typed gives an element of a typed list its type, which the API server leaves out.
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

// ErrNotObject is wrapped by the Error of a well-formed document that is not a Kubernetes object: it is not
// a mapping, or has no apiVersion or no kind.
var ErrNotObject = errors.New("not a Kubernetes object")

// Error is an error in a manifest, with its place.
type Error struct {
	Path string // the file, the URL without its password, or "stdin"
	Line int    // counted from 1 in the file; 0 for the file as a whole
	Err  error
}

// Error returns "path:line: reason".
func (e *Error) Error() string { return e.Origin() + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Origin returns the place as in engine.Document.
func (e *Error) Origin() string { return origin(e.Path, e.Line) }

func origin(path string, line int) string {
	if line == 0 {
		return path
	}
	return path + ":" + strconv.Itoa(line)
}

// errorAt adds the path of the manifest to an error.
func errorAt(path string, err error) *Error {
	var placed *Error
	if errors.As(err, &placed) {
		return &Error{Path: path, Line: placed.Line, Err: placed.Err}
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		err = file.Err // without a second path
	}
	return &Error{Path: path, Err: err}
}

// mayBeSecret reports whether a file that cannot be decoded may hold a Secret, or make one.
func mayBeSecret(text []byte) bool {
	text = bytes.ToLower(text)
	return bytes.Contains(text, []byte("secret")) || bytes.Contains(text, []byte("stringdata"))
}

func quoted(text string, secret bool) string {
	if secret {
		return engine.HiddenValue
	}
	return text
}

// placeholder stands for the elements of the list in the rest of a document.
const placeholder = "elements-that-are-read-one-by-one"

// blockStart matches the start of a document whose first line is a key: a mapping in block style.
var blockStart = regexp.MustCompile(`\A(?:[ \t]*(?:#.*)?\r?\n)*[A-Za-z]+:(?:[ \t\r\n]|$)`)

// itemsLine matches the line before the elements.
var itemsLine = regexp.MustCompile(`(?m)^items:\n`)

// decodeList decodes a document in block style, as kubectl prints it, by the elements of its list: nodes
// take many times the memory of values. It cuts the document by indentation only, and reports false if it
// has to be decoded as a whole, for example because an element has an alias for something in another one, or
// the cut is within a quoted string. A string that is cut within quotes or brackets is never valid before
// the cut.
func decodeList(p part, aliases *int) (value, bool) {
	at := itemsLine.FindIndex(p.text)
	if at == nil || !blockStart.Match(p.text) || bytes.Contains(p.text, []byte(placeholder)) ||
		HasOtherBreaks(p.text) {
		return value{}, false
	}
	elements, first, end := cutElements(p.from(at[1]))
	text := slices.Concat(p.text[:at[0]], []byte("items: "+placeholder+"\n"), p.text[at[1]:at[1]+first],
		p.text[at[1]+end:])
	whole, ok := single(part{text: text, line: p.line}, 0, aliases)
	object, isMap := whole.content.(map[string]any)
	if !ok || !isMap || object["items"] != placeholder || len(elements) == 0 {
		return value{}, false
	}
	items := make([]any, len(elements))
	whole.items = make([]int, len(elements))
	for i, e := range elements {
		e.text = bytes.Clone(e.text)
		e.text[bytes.IndexByte(e.text, '-')] = ' '
		element, ok := single(e, 2, aliases)
		if _, isMap := element.content.(map[string]any); !ok || !isMap {
			return value{}, false
		}
		items[i], whole.items[i] = element.content, element.line
	}
	object["items"] = items
	return whole, true
}

// HasOtherBreaks reports whether YAML sees a line break in a string where a file has none.
func HasOtherBreaks(text []byte) bool {
	return bytes.ContainsAny(text, "\u0085\u2028\u2029") ||
		bytes.Count(text, []byte("\r")) > bytes.Count(text, []byte("\r\n"))
}

// cutElements cuts a sequence into its elements, and returns where the first begins and the last ends. Lines
// with a deeper indentation, and comments, belong to an element.
func cutElements(p part) (elements []part, first, end int) {
	indent, start := -1, 0
	cut := func() {
		if len(elements) > 0 {
			elements[len(elements)-1].text = p.text[start:end]
		}
	}
	for text := range bytes.Lines(p.text) {
		content := bytes.TrimLeft(text, " ")
		column := len(text) - len(content)
		starts := len(content) > 1 && content[0] == '-' && bytes.IndexByte([]byte(" \t\r\n"), content[1]) >= 0
		switch {
		case starts && (indent < 0 || column == indent):
			if cut(); indent < 0 {
				indent, first = column, end
			}
			start, elements = end, append(elements, part{line: p.line})
		case len(content) == 0 || bytes.IndexByte([]byte("#\r\n"), content[0]) >= 0:
		case indent < 0 || column <= indent:
			cut()
			return elements, first, end
		}
		end += len(text)
		p.line++
	}
	cut()
	return elements, first, end
}

// single decodes a string with exactly one value.
func single(p part, depth int, aliases *int) (value, bool) {
	values, err := decodeNodes(p, depth, aliases)
	if err != nil || len(values) != 1 {
		return value{}, false
	}
	return values[0], true
}
