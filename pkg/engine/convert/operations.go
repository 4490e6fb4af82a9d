package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kyaml "sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/expr"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

type patchOperation struct {
	op    string
	path  []segment
	from  []segment // of move and copy
	value any
}

// segment is a part of a JSON pointer: a constant or a string expression.
type segment struct {
	text string
	cel  expr.Expr // nil: a constant
}

const placeholder = "KMVARIABLE"

var placeholders = regexp.MustCompile(placeholder + `[0-9]+X`)

// operations reads a JSON patch. Kyverno substitutes variables before parsing, so placeholders stand for
// them.
func (s *scope) operations(text string) []patchOperation {
	segments := must(variables.Split(text))
	var b strings.Builder
	var templates []string
	for _, segment := range segments {
		if segment.Variable == nil {
			b.WriteString(segment.Text)
			continue
		}
		fmt.Fprintf(&b, "%s%dX", placeholder, len(templates))
		templates = append(templates, "{{"+variables.Source(segment.Variable)+"}}")
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(b.String()), &document); err != nil {
		panic(refuseField("", "write the operations out", "is a list of operations only once its variables are known"))
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.SequenceNode {
		panic(refuseField("", "write the operations out", "is a list of operations only once its variables are known"))
	}
	reader := patchReader{scope: s, templates: templates}
	var out []patchOperation
	for _, item := range document.Content[0].Content {
		out = append(out, reader.operation(item))
	}
	return out
}

type patchReader struct {
	*scope
	templates []string
}

func (r *patchReader) operation(n *yaml.Node) patchOperation {
	if n.Kind != yaml.MappingNode {
		panic(refuseField("", "write the operations out", "an operation is one only once its variables are known"))
	}
	var o patchOperation
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		switch key {
		case "op":
			o.op = value.Value
		case "path":
			o.path = r.pointer(value.Value)
		case "value":
			o.value = r.value(value)
		case "from":
			o.from = r.pointer(value.Value)
		default:
			panic(refuseField("", "correct it first", "an operation has the field %s", key))
		}
	}
	if placeholders.MatchString(o.op) {
		panic(refuseField("", "write the operation out", "which operation it is depends on a variable"))
	}
	return o
}

func (r *patchReader) pointer(text string) []segment {
	var out []segment
	for _, part := range strings.Split(strings.Trim(text, "/"), "/") {
		if !placeholders.MatchString(part) {
			out = append(out, segment{text: jsonpointer.Unescape(part)})
			continue
		}
		x := r.templateText(r.restored(part))
		if constant, ok := expr.StringOf(x.cel); ok {
			out = append(out, segment{text: constant})
			continue
		}
		form := translate.PathSegment
		_, escaped := asPointer(x.cel)
		if escaped {
			form = translate.PlainText
		}
		if r.form(part) < form {
			panic(refuseField("", "use it as a key of a patchStrategicMerge", "a part of a path that may have a slash or a quote in it (%s), after which Kyverno reads another path", r.restored(part)))
		}
		if placeholders.ReplaceAllString(part, "") == "" && !r.isIndex(x.cel) && !escaped { // a key is never empty
			r.need(expr.Not(isEmpty(x.cel)))
		}
		out = append(out, segment{cel: x.cel})
	}
	return out
}

// restored restores the variables in a string.
func (r *patchReader) restored(text string) string {
	return placeholders.ReplaceAllStringFunc(text, func(p string) string {
		i, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(p, placeholder), "X"))
		return r.templates[i]
	})
}

func (r *patchReader) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias)
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			below := r.value(n.Content[i+1])
			if !placeholders.MatchString(key) {
				key = fmt.Sprint(plainScalar(n.Content[i]))
			} else {
				x := r.quoted(key)
				key, below = computedKey+x.cel.String(), keyed{x.cel, below}
			}
			out[key] = below
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			out = append(out, r.value(item))
		}
		return out
	}
	if !placeholders.MatchString(n.Value) {
		return plainScalar(n)
	}
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if quoted || placeholders.FindString(n.Value) != n.Value {
		return r.quoted(n.Value)
	}
	x := r.template(r.restored(n.Value))
	if r.form(n.Value) < translate.PlainText {
		panic(refuseField("", "quote it, or write a patchStrategicMerge", "a variable that is not quoted (%s): Kyverno reads its value as YAML, which may be a list, a map, or none at all", r.restored(n.Value)))
	}
	if x.isText() {
		r.Note("texts such as 5 and true in " + r.restored(n.Value) + " stay texts; Kyverno reads them as YAML, since they are not quoted")
	}
	return x
}

// quoted is the expression of a string with variables after YAML parsing.
func (r *patchReader) quoted(text string) expression {
	x := r.templateText(r.restored(text))
	if r.form(text) < translate.PlainText {
		panic(refuseField("", "write a patchStrategicMerge", "a variable in a text (%s), whose value may have quotes, backslashes or line breaks in it: Kyverno reads the text as YAML once it is there", r.restored(text)))
	}
	return x
}

// form is the common form of all variables in a string.
func (r *patchReader) form(text string) translate.Form {
	form := translate.PathSegment
	for _, variable := range placeholders.FindAllString(text, -1) {
		form = min(form, r.Text(r.restored(variable)).Type().Form())
	}
	return form
}

// plainScalar reads a scalar as Kyverno's library does, as YAML 1.1: n and off are false, 010 is 8.
func plainScalar(n *yaml.Node) any {
	if n.Style != 0 {
		return n.Value
	}
	var v any
	if err := utiljson.Unmarshal(must(kyaml.YAMLToJSON([]byte(n.Value))), &v); err != nil {
		panic(&Refusal{Reason: err.Error()})
	}
	return v
}

// patch adds the operations of a JSON patch with Kyverno's semantics: add creates missing parents, and remove
// ignores missing values.
func (s *scope) patch(all []patchOperation, root place, out *operations) {
	for i, o := range all {
		inField(fmt.Sprintf("[%d]", i), func() { s.patchOne(o, root, out) })
	}
}

func (s *scope) patchOne(o patchOperation, root place, out *operations) {
	if len(o.path) == 0 || o.path[0].text == "" && o.path[0].cel == nil {
		panic(refuseField("path", "", "the whole object"))
	}
	at := s.parent(o, root, out)
	last := o.path[len(o.path)-1]
	if o.op == "move" || o.op == "copy" {
		s.moved(o, root, at, out)
		return
	}
	switch {
	case last.text == "-1" && at.isList() && o.op == "replace":
		panic(refuseField("path", "name the element by its index", "the last element of a list that may be empty"))
	case last.text == "-", last.text == "-1" && at.isList() && o.op == "add":
		if o.op != "add" {
			panic(refuseField("path", "", "the end of a list, which nothing can be done to but add"))
		}
		out.one(operation("add", at.jsonPointer(expr.String("-")), data(o.value)))
		return
	}
	list := at
	at = s.descend(at, last)
	content := o.value
	if at.parentIsLabels() {
		content = textOf(content)
	}
	if labels, isMap := content.(map[string]any); isMap && at.isLabels() {
		texts := map[string]any{}
		for key, v := range labels {
			texts[key] = textOf(v)
		}
		content = texts
	}
	written := data(content)
	switch o.op {
	case "add":
		if n, err := strconv.Atoi(last.text); err == nil && list.isList() {
			s.longEnough(list, n)
		}
		out.one(operation("add", at.jsonPointer(), written))
		out.make(at)
	case "replace":
		op := "replace"
		n, err := strconv.Atoi(last.text)
		switch {
		case out.has(at):
		case err == nil && n >= 0 && list.isList(): // an index behind the last one appends
			s.longEnough(list, n)
			op := expr.Cond(at.has, expr.String("replace"), expr.String("add"))
			out.one(operationOf(op, expr.Entry{Name: "path", Value: at.jsonPointer()}, expr.Entry{Name: "value", Value: written}))
			return
		case at.path[len(at.path)-1] == "[]":
			s.need(at.has)
		default: // a missing value is added
			op = "add"
		}
		out.one(operation(op, at.jsonPointer(), written))
	case "remove":
		out.when(at.has, oneOperation(operation("remove", at.jsonPointer(), nil)))
	case "test":
		s.need(at.has)
		s.need(expr.Equal(at.plain, written))
	default:
		panic(refuseField("op", "write add, replace and remove", "the operation %s", o.op))
	}
}

// moved adds a move or copy operation. The source and the destination's parent have to exist.
func (s *scope) moved(o patchOperation, root, to place, out *operations) {
	last := o.path[len(o.path)-1]
	if len(o.from) == 0 || to.isList() || last.text == "-" {
		panic(refuseField("", "write add and remove", "the operation %s into a list", o.op))
	}
	from := root
	for i, segment := range o.from {
		if i > 0 {
			s.within(from, s.kindFor(segment))
		}
		from = s.descend(from, segment)
	}
	for _, needed := range []place{from, to} {
		if !out.has(needed) && !s.needed(needed) {
			s.need(needed.has)
		}
	}
	at := s.descend(to, last)
	out.one(operationOf(expr.String(o.op), expr.Entry{Name: "from", Value: from.jsonPointer()}, expr.Entry{Name: "path", Value: at.jsonPointer()}))
	out.make(at)
}

// parent returns the map or list that an operation writes to, and adds operations that create it and its
// missing parents.
func (s *scope) parent(o patchOperation, root place, out *operations) place {
	at := root
	for i, seg := range o.path[:len(o.path)-1] {
		list := at
		at = s.descend(at, seg)
		if !s.loopsOver(at) {
			s.within(at, s.kindFor(o.path[i+1]))
		}
		if (o.op == "add" || o.op == "replace") && !s.loopsOver(at) && !s.needed(at) &&
			(at.root == root.root || at.of != nil) {
			empty := expr.Map()
			if s.kindFor(o.path[i+1]) == "list" {
				empty = expr.List()
			}
			if n, err := strconv.Atoi(seg.text); err == nil && at.path[len(at.path)-1] == "[]" {
				s.longEnough(list, n)
				out.ensure(at, empty)
			} else if at.path[len(at.path)-1] != "[]" {
				out.ensure(at, empty)
			} else if at.root == root.root {
				s.need(at.has)
			}
		}
	}
	return at
}

// kindFor is the kind of value that Kyverno creates for a missing part of a JSON pointer.
func (s *scope) kindFor(seg segment) string {
	if seg.text == "-" || wholeNumber.MatchString(seg.text) || s.isIndex(seg.cel) {
		return "list"
	}
	return "map"
}

// textOf is a scalar as a string, for labels and annotations.
func textOf(content any) any {
	switch v := content.(type) {
	case expression:
		return v.asText()
	case map[string]any, []any, nil:
		return v
	}
	return plainText(content)
}

// longEnough requires a minimum list length.
func (s *scope) longEnough(list place, n int) {
	if n > 0 {
		s.need(expr.Binary(">=", expr.Method(list.elements(), "size"), expr.Int(int64(n))))
	}
}

// needed reports whether the rule requires that a place, or one below it, exists.
func (s *scope) needed(at place) bool {
	plain := strings.NewReplacer("?", "", "has(", "", ".hasValue()", "", ")", "")
	path := plain.Replace(at.access().String())
	for _, need := range *s.needs {
		for _, c := range expr.Operands(need, "&&") {
			there := plain.Replace(c.String())
			if presence.MatchString(c.String()) &&
				(there == path || strings.HasPrefix(there, path+".") || strings.HasPrefix(there, path+"[")) {
				return true
			}
		}
	}
	return false
}

// presence matches a mere existence condition.
var presence = regexp.MustCompile(`^(has\([^() ]*\)|[^() ]*\.hasValue\(\))$`)

// loopsOver reports whether a place exists because a loop visits its elements.
func (s *scope) loopsOver(at place) bool {
	pointer, constant := expr.StringOf(at.jsonPointer())
	return constant && slices.ContainsFunc(s.loops, func(l loop) bool {
		list, constant := expr.StringOf(l.list.jsonPointer())
		return constant && strings.HasPrefix(list+"/", pointer+"/")
	})
}

func (s *scope) isIndex(e expr.Expr) bool {
	return slices.ContainsFunc(s.loops, func(l loop) bool { return expr.Same(e, indexText(l.index)) })
}

func (p place) isList() bool {
	atom, ok := p.shape()
	return ok && atom.List != nil && atom.Map == nil
}

// descend is the place that a JSON pointer segment leads to.
func (s *scope) descend(at place, seg segment) place {
	for _, l := range s.loops {
		if expr.Same(seg.cel, indexText(l.index)) && l.list.root != "" &&
			expr.Same(at.jsonPointer(), l.list.jsonPointer()) {
			return at.element(l.variable, seg.cel)
		}
	}
	list := at.isList() || !at.known() && (wholeNumber.MatchString(seg.text) || s.isIndex(seg.cel))
	switch {
	case list && seg.text == "-1": // the last element, or the first of an empty list
		length := expr.Method(at.elements(), "size")
		last := expr.Cond(expr.Binary(">", length, expr.Int(0)), expr.Binary("-", length, expr.Int(1)), expr.Int(0))
		return at.index(last, expr.Call("string", last))
	case list && seg.cel == nil:
		return at.index(expr.Name(seg.text), expr.String(seg.text))
	case list:
		return at.index(expr.Unwrapped(seg.cel, "string"), seg.cel)
	case seg.cel != nil:
		key, escaped := asPointer(seg.cel)
		if text := key.String(); !escaped && strings.Contains(text, "~1") {
			key = expr.Method(key, "replace", expr.String("~1"), expr.String("/"))
		}
		out := at.computed(key)
		out.pointer[len(out.pointer)-1] = seg.cel // unescaped, as Kyverno inserts it
		return out
	}
	return at.field(seg.text, s.sure(at, seg.text))
}

// asPointer returns the key that an expression escapes for a JSON pointer, if it does.
func asPointer(e expr.Expr) (key expr.Expr, escaped bool) {
	return expr.CutMethod(e, "replace", expr.String("/"), expr.String("~1"))
}
