// Package edit changes values in manifests, and keeps every other byte: comments, the order of keys, quotes,
// indentation, line ends. It finds values by the nodes of the YAML library, and replaces ranges of bytes.
package edit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
)

// Document is an object of a file before and after the edit.
type Document struct {
	Before, After map[string]any
}

// Error is why a file cannot be edited in place.
type Error struct {
	Line   int // counted from 1 in the file
	Reason string
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

// Apply returns the content of a file with changed documents. These are all documents of the file, as
// input.Reader reads them. The result is read again, and has to contain exactly the wanted documents. Each
// error is an *Error.
func Apply(ctx context.Context, text []byte, documents []Document) ([]byte, error) {
	parts, err := input.Parts(text)
	if err != nil {
		return nil, &Error{Line: 1, Reason: err.Error()}
	}
	var all []splice
	next := documents
	for _, p := range parts {
		made, left, err := applyPart(text, p, next)
		if err != nil {
			return nil, err
		}
		all, next = append(all, made...), left
	}
	if len(next) > 0 {
		return nil, &Error{Line: 1, Reason: "its documents could not be found again"}
	}
	out := cut(text, all)
	return out, check(ctx, out, documents)
}

// check returns an error unless a file's content has the documents after the edit.
func check(ctx context.Context, text []byte, documents []Document) error {
	line, path := 1, ""
	if len(documents) == 1 && documents[0].Before["kind"] == "Kustomization" { // its kind may be implied
		path = "kustomization.yaml"
	}
	got, err := input.ReadText(ctx, path, text)
	if at := (*input.Error)(nil); errors.As(err, &at) {
		line, err = at.Line, at.Err
	}
	if err != nil {
		return &Error{Line: line, Reason: fmt.Sprintf("it cannot be edited in place, without this error: %v", err)}
	}
	if len(got) != len(documents) {
		return &Error{Line: line, Reason: "it cannot be edited in place: the documents would be others"}
	}
	for i := range got {
		if !diff.Same(got[i].Object().Object, documents[i].After) {
			place := got[i].Origin[strings.LastIndexByte(got[i].Origin, ':')+1:]
			line, _ = strconv.Atoi(place)
			return &Error{Line: line, Reason: "it cannot be edited in place without a change to something else"}
		}
	}
	return nil
}

// splice is a replacement of a range of bytes.
type splice struct {
	start, end int
	text       string
}

// cut makes the replacements. Deletions may overlap each other.
func cut(text []byte, all []splice) []byte {
	slices.SortStableFunc(all, func(a, b splice) int { return cmp.Compare(a.start, b.start) })
	var out bytes.Buffer
	at := 0
	for _, s := range all {
		if s.start > at {
			out.Write(text[at:s.start])
		}
		out.WriteString(s.text)
		at = max(at, s.end)
	}
	out.Write(text[at:])
	return out.Bytes()
}

// editor changes the documents of one part.
type editor struct {
	text  []byte // the file
	part  input.Part
	lines []int // the offsets at which the lines of the part start
	style style
	ends  map[*yamlv3.Node]int
	// anchors has the new values of anchors.
	anchors map[*yamlv3.Node]any
	made    []splice
}

// slot is the context of a value.
type slot struct {
	flow   bool // in a flow collection
	indent int  // of the key or the dash before it, in characters; -1 for a root
	after  int  // the offset after the colon or the dash
}

// applyPart returns the replacements in a part, and the documents of the other parts.
func applyPart(text []byte, p input.Part, documents []Document) (made []splice, left []Document, err error) {
	e := &editor{text: text, part: p, ends: map[*yamlv3.Node]int{}, anchors: map[*yamlv3.Node]any{}}
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case *Error:
			err = failure
		default: // an index beyond a string that the library reads differently
			err = &Error{Line: p.Line, Reason: "it is written in a way that cannot be edited in place"}
		}
	}()
	roots, err := e.parse()
	if err != nil {
		return nil, nil, err
	}
	for _, root := range roots {
		objects := flatten(root)
		if len(objects) > len(documents) {
			return nil, nil, e.errorf(root, "its documents could not be found again")
		}
		changed := slices.ContainsFunc(documents[:len(objects)], func(d Document) bool {
			return !diff.Same(d.Before, d.After)
		})
		if changed && input.HasOtherBreaks(e.part.Text) {
			return nil, nil, e.errorf(root, "it has line breaks of YAML that are not those of a file: write them as escapes")
		}
		for i, n := range objects {
			if d := documents[i]; changed {
				e.value(n, d.Before, d.After,
					slot{flow: n != root && root.Style&yamlv3.FlowStyle != 0 || p.JSON, indent: -1, after: -1})
			}
		}
		documents = documents[len(objects):]
	}
	return e.made, documents, nil
}

// parse returns the roots of the part, except null.
func (e *editor) parse() (roots []*yamlv3.Node, err error) {
	e.lines = []int{e.part.Offset}
	for i, c := range e.part.Text {
		if c == '\n' {
			e.lines = append(e.lines, e.part.Offset+i+1)
		}
	}
	text := e.part.Text
	if e.part.JSON {
		text = escapes.ReplaceAllFunc(text, func(escape []byte) []byte {
			return bytes.Repeat([]byte("_"), len(escape))
		})
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	for {
		var document yamlv3.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &Error{Line: e.part.Line, Reason: "it cannot be read by the editor: " + err.Error()}
		}
		for _, root := range document.Content {
			if root.Kind != yamlv3.ScalarNode || root.ShortTag() != "!!null" {
				roots = append(roots, root)
			}
		}
	}
	e.style = styleOf(e.part, roots)
	return roots, nil
}

// escapes matches escapes of JSON that YAML does not have. parse needs only the positions of values.
var escapes = regexp.MustCompile(`\\(?:/|u[0-9A-Fa-f]{4})`)

// flatten returns the nodes of the objects of a root: itself, or the elements of a list, as package input
// does.
func flatten(n *yamlv3.Node) []*yamlv3.Node {
	at := n
	if at.Kind == yamlv3.AliasNode {
		at = at.Alias
	}
	kind, items := input.Member(at, "kind"), input.Member(at, "items")
	isList := kind != nil && strings.HasSuffix(kind.Value, "List") && items != nil &&
		items.Kind == yamlv3.SequenceNode
	switch {
	case isList:
		var out []*yamlv3.Node
		for _, item := range items.Content {
			out = append(out, flatten(item)...)
		}
		return out
	case kind != nil && kind.Value == "List" && (items == nil || items.ShortTag() == "!!null"):
		return nil
	}
	return []*yamlv3.Node{n}
}

func (e *editor) errorf(n *yamlv3.Node, format string, args ...any) *Error {
	return &Error{Line: e.part.Line + max(n.Line, 1) - 1, Reason: fmt.Sprintf(format, args...)}
}

// refuse aborts the edit of the file.
func (e *editor) refuse(n *yamlv3.Node, format string, args ...any) {
	panic(e.errorf(n, format, args...))
}

func (e *editor) splice(start, end int, text string) {
	e.made = append(e.made, splice{start, end, text})
}

// value replaces a value. It visits unchanged values as well: they may contain an alias for a changed one.
func (e *editor) value(n *yamlv3.Node, before, after any, s slot) {
	if n.Anchor != "" {
		e.anchors[n] = after
	}
	switch n.Kind {
	case yamlv3.AliasNode:
		now, visited := e.anchors[n.Alias]
		if !visited {
			now = before
		}
		if !diff.Same(now, after) {
			e.replace(n, after, s)
		}
		return
	case yamlv3.MappingNode:
		a, isMap := after.(map[string]any)
		if b, was := before.(map[string]any); isMap && was {
			e.mapping(n, b, a, s)
			return
		}
	case yamlv3.SequenceNode:
		a, isList := after.([]any)
		if b, was := before.([]any); isList && was && len(b) == len(n.Content) {
			e.sequence(n, b, a, s)
			return
		}
	}
	switch {
	case diff.Same(before, after):
	case n.Kind == yamlv3.ScalarNode && !isCollection(after):
		e.scalar(n, after, s)
	default:
		e.replace(n, after, s)
	}
}

func isCollection(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// isFlow reports whether a value is written in brackets.
func isFlow(n *yamlv3.Node) bool { return n.Style&yamlv3.FlowStyle != 0 }

// isBlockScalar reports whether a scalar is written below its key.
func isBlockScalar(n *yamlv3.Node) bool {
	return n.Style&(yamlv3.LiteralStyle|yamlv3.FoldedStyle) != 0
}
