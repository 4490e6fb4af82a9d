package variables

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/pattern"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Template is a compiled JSON value with variables: immutable and safe for concurrent use. A nil Template,
// for a missing or invalid field, renders to null.
type Template struct {
	root        part
	expressions []*jmespath.Expression
}

// Parse compiles a value. In its strings and map keys, a variable is {{ }} around an expression:
//
//   - a string that is one variable and nothing else takes on the variable's value,
//     of whatever type; in other strings, values are inserted as strings or as JSON;
//   - variables nest, innermost first: {{ a.{{ b }} }};
//   - \{{ is a plain {{, and {{- is the same as {{;
//   - {{@}} is the value of the live object at the place of the string, the live
//     object being `target` where the scope has it, else `request.object`;
//   - $(path) is replaced by another string of the same document, path being
//     relative to the string itself, or absolute; \$( is a plain $(.
//
// A patch that is itself a string, such as patchesJson6902, is like any other string: variables are inserted
// before it is parsed.
//
// The document may be part of a larger one, at a path such as "mutate", "patchStrategicMerge". The path shows
// in errors and in absolute references; {{@}} always counts from the document itself.
func Parse(doc any, path ...string) (*Template, error) {
	p := parser{doc: doc, prefix: path}
	root := p.parse(doc, nil)
	if p.err != nil {
		return nil, p.err
	}
	return &Template{root: root, expressions: p.expressions}, nil
}

// Decode compiles the value at a place in a policy; nil if it is missing or, after an error to the node's
// report, invalid.
func Decode(n policydecode.Node) *Template {
	if n.Value == nil {
		return nil
	}
	t, err := Parse(n.Value)
	if err != nil {
		n.Fail("%w", err)
		return nil
	}
	return t
}

// Render substitutes the variables. Results share the parts without variables. Errors are *ResolveError.
func (t *Template) Render(s *Scope) (any, error) {
	if t == nil {
		return nil, nil
	}
	r := &renderer{scope: s}
	value := t.root.value(r)
	if r.err != nil {
		return nil, r.err
	}
	return value, nil
}

// Check is Render without its result.
func (t *Template) Check(s *Scope) error {
	r := &renderer{scope: s, checks: true}
	t.root.value(r)
	return r.err
}

// Static reports whether there are no variables.
func (t *Template) Static() bool {
	return t == nil || t.root.static()
}

// NotIdempotent returns why the same data can render differently in another run; else it is empty.
func (t *Template) NotIdempotent() string {
	if t == nil {
		return ""
	}
	var reasons []string
	for _, expr := range t.expressions {
		if reason := expr.NotIdempotent(); reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return strings.Join(reasons, "; ")
}

type part struct {
	fixed  any                   // the value if there are no variables
	render func(r *renderer) any // nil without variables
}

func (p part) static() bool { return p.render == nil }

func (p part) value(r *renderer) any {
	if p.static() {
		return p.fixed
	}
	return p.render(r)
}

type parser struct {
	doc         any
	prefix      []string
	expressions []*jmespath.Expression
	keeps       bool  // keep variables unchanged
	err         error // the first one
}

func (p *parser) parse(value any, path []string) part {
	if len(path) > limit.Depth {
		return p.fail(&limit.Error{What: "levels of nesting in a document", Max: limit.Depth})
	}
	switch v := value.(type) {
	case string:
		return p.parseText(v, path)
	case []any:
		return p.list(v, path)
	case map[string]any:
		return p.object(v, path)
	}
	return part{fixed: value}
}

func (p *parser) fail(err error) part {
	p.err = cmp.Or(p.err, err)
	return part{}
}

func (p *parser) list(items []any, path []string) part {
	parts := make([]part, len(items))
	for i, item := range items {
		parts[i] = p.parse(item, appendPath(path, strconv.Itoa(i)))
	}
	return settle(parts, func(r *renderer) any {
		items := make([]any, len(parts))
		for i, part := range parts {
			items[i] = part.value(r)
		}
		return items
	})
}

func (p *parser) object(fields map[string]any, path []string) part {
	keys := slices.Sorted(maps.Keys(fields))
	parts := make([]part, 0, 2*len(keys)) // name and value of each
	for _, key := range keys {
		below := appendPath(path, key)
		parts = append(parts, p.parseText(key, below), p.parse(fields[key], below))
	}
	return settle(parts, func(r *renderer) any {
		var fields map[string]any
		if !r.checks {
			fields = make(map[string]any, len(keys))
		}
		for i, key := range keys {
			switch name := parts[2*i].value(r).(type) {
			case string:
				key = name
			case nil: // unchanged, as in Kyverno
			default:
				r.fail(key, p.pointer(appendPath(path, key)), fmt.Errorf("a key must be a string, not %T", name))
			}
			if value := parts[2*i+1].value(r); fields != nil {
				fields[key] = value
			}
		}
		return fields
	})
}

// settle renders parts without variables immediately.
func settle(parts []part, render func(r *renderer) any) part {
	if slices.ContainsFunc(parts, func(p part) bool { return !p.static() }) {
		return part{render: render}
	}
	return part{fixed: render(&renderer{})}
}

// appendPath extends a path without modifying a shared one.
func appendPath(path []string, name string) []string {
	return append(path[:len(path):len(path)], name)
}

// pointer returns a path as in errors.
func (p *parser) pointer(path []string) string {
	return "/" + strings.Join(slices.Concat(p.prefix, path), "/")
}

func (p *parser) parseText(text string, path []string) part {
	if strings.Contains(text, "$(") {
		var err error
		if text, err = p.references(text, path); err != nil {
			return p.fail(err)
		}
	}
	if p.keeps || !strings.Contains(text, "{{") {
		return part{fixed: text}
	}
	segments, err := Split(text)
	switch {
	case err != nil:
		return p.fail(fmt.Errorf("at path %s: %w", p.pointer(path), err))
	case len(segments) == 1 && segments[0].Variable == nil:
		return part{fixed: segments[0].Text}
	case len(segments) == 1:
		return part{render: p.variable(segments[0].Variable, path)}
	}
	joined := p.joinSegments(segments, path)
	return part{render: func(r *renderer) any { return joined(r) }}
}

// joinSegments compiles segments into a string; other values are inserted as JSON.
func (p *parser) joinSegments(segments []Segment, path []string) func(r *renderer) string {
	variables := make([]func(*renderer) any, len(segments))
	for i, s := range segments {
		if s.Variable != nil {
			variables[i] = p.variable(s.Variable, path)
		}
	}
	place := p.pointer(path)
	return func(r *renderer) string {
		var b strings.Builder
		for i, s := range segments {
			text := s.Text
			if variables[i] != nil {
				value := variables[i](r)
				var isText bool
				var err error
				if text, isText = value.(string); !isText {
					text, err = jmespath.ToJSON(value)
				}
				r.written += len(text)
				if err = cmp.Or(err, limit.Size(r.written)); err != nil {
					r.fail(Source(s.Variable), place, err)
					return ""
				}
			}
			b.WriteString(text)
		}
		return b.String()
	}
}

// variable compiles a variable. One with nested variables is compiled when rendered.
func (p *parser) variable(pieces []Segment, path []string) func(r *renderer) any {
	place := p.pointer(path)
	if len(pieces) > 1 || pieces[0].Variable != nil {
		text := p.joinSegments(pieces, path)
		if probe, err := jmespath.Compile(withPlaceholders(pieces)); err == nil { // only for analysis
			p.expressions = append(p.expressions, probe)
		}
		return func(r *renderer) any {
			source := trimmed(text(r))
			if r.err != nil {
				return nil
			}
			expr, err := jmespath.CompileRendered(source)
			if err != nil {
				r.fail(source, place, err)
				return nil
			}
			return r.query(expr, place)
		}
	}
	compile := func(text string) *jmespath.Expression {
		expr, err := jmespath.Compile(text)
		if err != nil {
			p.fail(&ResolveError{Expression: pieces[0].Text, Path: place, Err: err})
		}
		p.expressions = append(p.expressions, expr)
		return expr
	}
	if pieces[0].Text != "@" {
		expr := compile(pieces[0].Text)
		return func(r *renderer) any { return r.query(expr, place) }
	}
	names := identifiers(path)
	onTarget, onObject := compile("target"+names), compile("request.object"+names)
	return func(r *renderer) any {
		if _, found, err := r.scope.lookup("target"); found && err == nil {
			return r.query(onTarget, place)
		}
		return r.query(onObject, place)
	}
}

// identifiers returns a path as the end of an expression, without anchors, since the object has plain keys.
func identifiers(path []string) string {
	var b strings.Builder
	for _, name := range path {
		if len(name) < 10 && strings.Trim(name, "0123456789") == "" && name != "" {
			b.WriteString("[" + name + "]")
			continue
		}
		_, plain := pattern.ParseKey(name)
		quoted, _ := json.Marshal(plain) // a string never fails
		b.WriteString("." + string(quoted))
	}
	return b.String()
}

type renderer struct {
	scope   *Scope
	checks  bool  // makes no maps
	written int   // bytes of strings
	err     error // the first one, which stops evaluation
}

func (r *renderer) fail(expression, path string, err error) {
	if r.err == nil {
		r.err = &ResolveError{Expression: expression, Path: path, Err: err}
	}
}

func (r *renderer) query(expr *jmespath.Expression, path string) any {
	if r.err != nil {
		return nil
	}
	value, err := r.scope.Query(expr)
	if err != nil {
		r.fail(expr.String(), path, err)
	}
	return value
}

// maxQuoted bounds the quote of an expression or a path in an error, in bytes.
const maxQuoted = 1000

// ResolveError is a variable without a value, in Kyverno's words; errors.As finds a *jmespath.NotFoundError
// in it for a missing key.
type ResolveError struct {
	Expression string
	Path       string // such as "/spec/template/metadata/labels/team"
	Err        error
}

// Error names the variable and its place, each cut short.
func (e *ResolveError) Error() string {
	return fmt.Sprintf("failed to resolve %s at path %s: %v", engine.Shorten(e.Expression, maxQuoted),
		engine.Shorten(e.Path, maxQuoted), e.Err)
}

// Unwrap returns the reason.
func (e *ResolveError) Unwrap() error { return e.Err }
