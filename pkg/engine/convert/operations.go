package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
	"go.yaml.in/yaml/v3"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/convert/translate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
)

// patchOperation is an operation of a JSON patch of the old policy.
type patchOperation struct {
	op       string
	path     []segment
	from     []segment // of move and copy
	value    any
	hasValue bool
}

// segment is a part of a JSON pointer: a constant, or an expression that is a text.
type segment struct {
	text string
	cel  string // empty for a constant
}

const placeholder = "KMVARIABLE"

var placeholders = regexp.MustCompile(placeholder + `[0-9]+X`)

// operations reads a JSON patch. Variables are inserted before it is read, so that they stand for
// placeholders meanwhile.
func (s *scope) operations(text string) ([]patchOperation, error) {
	segments, err := variables.Split(text)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	var templates []string
	for _, segment := range segments {
		if segment.Variable == nil {
			b.WriteString(segment.Text)
			continue
		}
		fmt.Fprintf(&b, "%s%dX", placeholder, len(templates))
		templates = append(templates, source(segment.Variable))
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(b.String()), &document); err != nil {
		return nil, refuseField("", "write the operations out", "is a list of operations only once its variables are known")
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.SequenceNode {
		return nil, refuseField("", "write the operations out", "is a list of operations only once its variables are known")
	}
	reader := patchReader{scope: s, templates: templates}
	var out []patchOperation
	for _, item := range document.Content[0].Content {
		o, err := reader.operation(item)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// source is a variable as it is written.
func source(pieces []variables.Segment) string {
	var b strings.Builder
	b.WriteString("{{")
	for _, piece := range pieces {
		if piece.Variable != nil {
			b.WriteString(source(piece.Variable))
		} else {
			b.WriteString(piece.Text)
		}
	}
	b.WriteString("}}")
	return b.String()
}

// patchReader reads operations with placeholders.
type patchReader struct {
	*scope
	templates []string
}

func (r *patchReader) operation(n *yaml.Node) (o patchOperation, err error) {
	if n.Kind != yaml.MappingNode {
		return o, refuseField("", "write the operations out", "an operation is one only once its variables are known")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		switch key {
		case "op":
			o.op = value.Value
		case "path":
			if o.path, err = r.pointer(value.Value); err != nil {
				return o, err
			}
		case "value":
			o.hasValue = true
			if o.value, err = r.value(value); err != nil {
				return o, err
			}
		case "from":
			if o.from, err = r.pointer(value.Value); err != nil {
				return o, err
			}
		}
	}
	if placeholders.MatchString(o.op) {
		return o, refuseField("", "write the operation out", "which operation it is depends on a variable")
	}
	return o, nil
}

func (r *patchReader) pointer(text string) ([]segment, error) {
	var out []segment
	for _, part := range strings.Split(strings.Trim(text, "/"), "/") {
		if !placeholders.MatchString(part) {
			out = append(out, segment{text: jsonpointer.Unescape(part)})
			continue
		}
		x, err := r.text(r.restored(part))
		if err != nil {
			return nil, err
		}
		if constant, err := strconv.Unquote(x.cel); err == nil {
			out = append(out, segment{text: constant})
			continue
		}
		form := translate.PathSegment
		if strings.HasSuffix(x.cel, asPointer) {
			form = translate.PlainText
		}
		if is, err := r.form(part); err != nil {
			return nil, err
		} else if is < form {
			return nil, refuseField("", "use it as a key of a patchStrategicMerge", "a part of a path that may have a slash or a quote in it (%s), after which Kyverno reads another path", r.restored(part))
		}
		if placeholders.ReplaceAllString(part, "") == "" && !r.isIndex(x.cel) && !strings.HasSuffix(x.cel, asPointer) { // no key is empty
			r.needText(negate(isEmpty(x.cel)))
		}
		out = append(out, segment{cel: x.cel})
	}
	return out, nil
}

// restored is a text with its variables.
func (r *patchReader) restored(text string) string {
	return placeholders.ReplaceAllStringFunc(text, func(p string) string {
		i, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(p, placeholder), "X"))
		return r.templates[i]
	})
}

func (r *patchReader) value(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias)
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			below, err := r.value(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			if placeholders.MatchString(key) {
				x, err := r.quoted(key)
				if err != nil {
					return nil, err
				}
				key = computedKey + x.cel
			}
			out[key] = below
		}
		return out, nil
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			below, err := r.value(item)
			if err != nil {
				return nil, err
			}
			out = append(out, below)
		}
		return out, nil
	}
	if !placeholders.MatchString(n.Value) {
		return plainScalar(n)
	}
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if quoted || placeholders.FindString(n.Value) != n.Value {
		return r.quoted(n.Value)
	}
	x, err := r.template(r.restored(n.Value))
	if x.text {
		r.Note("texts such as 5 and true in " + r.restored(n.Value) + " stay texts; Kyverno reads them as YAML, since they are not quoted")
	}
	return x, err
}

// quoted is an expression for a text of which variables are a part when it is read as YAML.
func (r *patchReader) quoted(text string) (expression, error) {
	x, err := r.text(r.restored(text))
	if err != nil {
		return x, err
	}
	form, err := r.form(text)
	if err == nil && form < translate.PlainText {
		err = refuseField("", "write a patchStrategicMerge", "a variable in a text (%s), whose value may have quotes, backslashes or line breaks in it: Kyverno reads the text as YAML once it is there", r.restored(text))
	}
	return x, err
}

// form is that of all variables of a text.
func (r *patchReader) form(text string) (translate.Form, error) {
	form := translate.PathSegment
	for _, variable := range placeholders.FindAllString(text, -1) {
		v, err := r.Text(r.restored(variable))
		if err != nil {
			return form, err
		}
		form = min(form, v.Type().Form())
	}
	return form, nil
}

func plainScalar(n *yaml.Node) (any, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	if i, ok := v.(int); ok {
		return int64(i), nil
	}
	return v, nil
}

// patch adds the operations of a JSON patch to those of a rule, so that they do what Kyverno does: it
// makes what is missing on the way to what it adds, and removes what is there.
func (s *scope) patch(all []patchOperation, root place, out *operations) error {
	for i, o := range all {
		if err := s.patchOne(o, root, out); err != nil {
			return inField(fmt.Sprintf("[%d]", i), asRefusal(err))
		}
	}
	return nil
}

func (s *scope) patchOne(o patchOperation, root place, out *operations) error {
	if len(o.path) == 0 || o.path[0].text == "" && o.path[0].cel == "" {
		return refuseField("path", "", "the whole object")
	}
	at := s.parent(o, root, out)
	last := o.path[len(o.path)-1]
	if o.op == "move" || o.op == "copy" {
		return s.moved(o, root, at, out)
	}
	switch {
	case last.text == "-1" && at.isList() && o.op == "replace":
		return refuseField("path", "name the element by its index", "the last element of a list that may be empty")
	case last.text == "-", last.text == "-1" && at.isList() && o.op == "add":
		if o.op != "add" {
			return refuseField("path", "", "the end of a list, which nothing can be done to but add")
		}
		out.one(operation("add", at.jsonPointer(quote("-")), data(o.value)))
		return nil
	}
	list := at
	at = s.descend(at, last)
	content := o.value
	if _, isText := content.(string); at.parentIsLabels() && !isText && content != nil {
		if x, computed := content.(expression); computed {
			if !x.text {
				text, err := x.asText()
				if err != nil {
					return err
				}
				content = text
			}
		} else if _, isMap := content.(map[string]any); !isMap {
			content = plainText(content)
		}
	}
	content = quotedLabels(content, at)
	written := data(content)
	switch o.op {
	case "add":
		if n, err := strconv.Atoi(last.text); err == nil && list.isList() {
			s.longEnough(list, n)
		}
		out.one(operation("add", at.jsonPointer(), written))
		out.made = append(out.made, at.jsonPointer())
	case "replace":
		op := "replace"
		n, err := strconv.Atoi(last.text)
		switch {
		case slices.Contains(out.made, at.jsonPointer()):
		case err == nil && n >= 0 && list.isList(): // the one behind the last is added
			s.longEnough(list, n)
			out.one(fmt.Sprintf("JSONPatch{op: %s, path: %s, value: %s}", choose(at.has(), quote("replace"), quote("add")), at.jsonPointer(), written))
			return nil
		case at.path[len(at.path)-1] == "[]":
			s.mustHave(at)
		default: // what is missing is added
			op = "add"
		}
		out.one(operation(op, at.jsonPointer(), written))
	case "remove":
		then := &operations{}
		then.one(operation("remove", at.jsonPointer(), ""))
		out.when(at.has(), then)
	case "test":
		s.mustHave(at)
		s.needText(at.plain() + " == " + written)
	default:
		return refuseField("op", "write add, replace and remove", "the operation %s", o.op)
	}
	return nil
}

// moved adds an operation that takes a value from another place, which has to be there, as the map that it is written to.
func (s *scope) moved(o patchOperation, root, to place, out *operations) error {
	last := o.path[len(o.path)-1]
	if len(o.from) == 0 || to.isList() || last.text == "-" {
		return refuseField("", "write add and remove", "the operation %s into a list", o.op)
	}
	from := root
	for _, segment := range o.from {
		from = s.descend(from, segment)
	}
	for _, needed := range []place{from, to} {
		if !slices.Contains(out.made, needed.jsonPointer()) && !s.needed(needed) {
			s.mustHave(needed)
		}
	}
	at := s.descend(to, last)
	out.one(fmt.Sprintf(`JSONPatch{op: %q, from: %s, path: %s}`, o.op, from.jsonPointer(), at.jsonPointer()))
	out.made = append(out.made, at.jsonPointer())
	return nil
}

// parent returns the place of the map or list that an operation writes to, and adds what makes it, and those above it, where there are none.
func (s *scope) parent(o patchOperation, root place, out *operations) place {
	at := root
	for i, seg := range o.path[:len(o.path)-1] {
		list := at
		at = s.descend(at, seg)
		if (o.op == "add" || o.op == "replace") && !s.loopsOver(at) && !s.needed(at) && (at.root == root.root || len(at.steps) > 0) {
			empty := "{}"
			if next := o.path[i+1]; next.text == "-" || wholeNumber.MatchString(next.text) || s.isIndex(next.cel) {
				empty = "[]"
			}
			if n, err := strconv.Atoi(seg.text); err == nil && at.path[len(at.path)-1] == "[]" {
				s.longEnough(list, n)
				out.ensure(at, empty)
			} else if at.path[len(at.path)-1] != "[]" {
				out.ensure(at, empty)
			} else if at.root == root.root {
				s.mustHave(at)
			}
		}
	}
	return at
}

// quotedLabels makes texts of the scalars in whole labels and annotations.
func quotedLabels(content any, at place) any {
	m, isMap := content.(map[string]any)
	if !isMap || !at.isLabels() {
		return content
	}
	out := map[string]any{}
	for key, v := range m {
		switch v := v.(type) {
		case expression:
			if !v.text {
				v = expression{cel: "string(" + v.cel + ")", text: true}
			}
			out[key] = v
		case map[string]any, []any, nil:
			out[key] = v
		default:
			out[key] = plainText(v)
		}
	}
	return out
}

// longEnough makes the rule depend on that a list has as many elements.
func (s *scope) longEnough(list place, n int) {
	if n > 0 {
		s.needText(fmt.Sprintf("%s.size() >= %d", list.or("[]"), n))
	}
}

// mustHave makes the rule depend on a place.
func (s *scope) mustHave(at place) {
	if at.maybe() {
		s.needText(at.has())
	}
}

// needed reports whether the rule depends on that a place is there, or one below it.
func (s *scope) needed(at place) bool {
	plain := strings.NewReplacer("?", "", "has(", "", ".hasValue()", "", ")", "")
	path := plain.Replace(at.access())
	var all []string
	for _, need := range *s.needs {
		if !loose(need) {
			all = append(all, splitTop(need, " && ")...)
		}
	}
	return slices.ContainsFunc(all, func(c string) bool {
		there := plain.Replace(c)
		return presence.MatchString(c) && (there == path || strings.HasPrefix(there, path+".") || strings.HasPrefix(there, path+"["))
	})
}

// presence matches a condition that asks only whether something is there.
var presence = regexp.MustCompile(`^(has\([^() ]*\)|[^() ]*\.hasValue\(\))$`)

// loopsOver reports whether a place is there because a loop goes over what is in it.
func (s *scope) loopsOver(at place) bool {
	pointer, err := strconv.Unquote(at.jsonPointer())
	return err == nil && slices.ContainsFunc(s.loops, func(l loop) bool {
		list, err := strconv.Unquote(l.list.jsonPointer())
		return err == nil && strings.HasPrefix(list+"/", pointer+"/")
	})
}

// isIndex reports whether an expression is the index of a loop.
func (s *scope) isIndex(cel string) bool {
	return slices.ContainsFunc(s.loops, func(l loop) bool { return cel == "string("+l.index+")" })
}

// isList reports whether the schema has a list at the place.
func (p place) isList() bool {
	atom, ok := atomOf(p.typ)
	return ok && atom.List != nil && atom.Map == nil
}

// descend is the place that a part of a JSON pointer leads to.
func (s *scope) descend(at place, seg segment) place {
	for _, l := range s.loops {
		if seg.cel == "string("+l.index+")" && l.list.root != "" && at.jsonPointer() == l.list.jsonPointer() {
			return at.element(l.variable, seg.cel)
		}
	}
	list := at.isList() || !at.known() && (wholeNumber.MatchString(seg.text) || s.isIndex(seg.cel))
	switch {
	case list && seg.text == "-1": // the last one, or the first of none
		length := at.or("[]") + ".size()"
		last := fmt.Sprintf("%s > 0 ? %s - 1 : 0", length, length)
		return at.at(last, "string("+last+")")
	case list && seg.cel == "":
		return at.at(seg.text, quote(seg.text))
	case list:
		number := strings.TrimSuffix(strings.TrimPrefix(seg.cel, "string("), ")")
		return at.at(number, seg.cel)
	case seg.cel != "":
		key := strings.TrimSuffix(seg.cel, asPointer)
		if key == seg.cel && strings.Contains(key, "~1") {
			key = "(" + key + `).replace("~1", "/")`
		}
		out := at.computed(key)
		out.pointer[len(out.pointer)-1] = seg.cel // as Kyverno inserts it
		return out
	}
	return at.field(seg.text, s.sure(at, seg.text))
}

// asPointer makes a part of a JSON pointer of a key.
const asPointer = `.replace("/", "~1")`

// at is the element of a list with an index.
func (p place) at(index, pointer string) place {
	out := p
	out.path = append(slices.Clip(p.path), "[]")
	out.steps = append(slices.Clip(p.steps), step{expr: index})
	out.pointer = append(slices.Clip(p.pointer), pointer)
	out.typ = elementType(p.typ)
	return out
}
