package variables

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Template is a JSON value with variables, compiled: immutable and safe for
// concurrent use. A nil Template is that of a field which is not there, or which has an
// error: it renders to null.
type Template struct {
	root        part
	expressions []*jmespath.Expression
}

// Parse compiles a value, in whose texts and map keys a variable is {{ }} around
// an expression:
//
//   - a text that is one variable and nothing else takes on the variable's value,
//     of whatever type; in other texts values are inserted as text, or as JSON;
//   - variables nest, innermost first: {{ a.{{ b }} }};
//   - \{{ is a plain {{, and {{- is the same as {{;
//   - {{@}} is the value of the live object at the place of the text, the live
//     object being `target` where the scope has it, else `request.object`;
//   - $(path) is replaced by another text of the same document, path being
//     relative to the text itself, or absolute; \$( is a plain $(.
//
// A patch that is itself a text, such as patchesJson6902, is a text like any
// other: variables are inserted before it is parsed.
func Parse(doc any) (*Template, error) { return ParseAt(doc) }

// Decode parses the value at a place in a policy. A missing value is nil, and so is one
// with an error, which goes to the node's report.
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

// ParseAt is like Parse for a document that is part of a larger one, at a path such
// as "mutate", "patchStrategicMerge". The path shows in errors and in absolute
// references; {{@}} always counts from the document itself.
func ParseAt(doc any, path ...string) (*Template, error) {
	p := parser{doc: doc, prefix: path}
	root := p.parse(doc, nil)
	if p.err != nil {
		return nil, p.err
	}
	return &Template{root: root, expressions: p.expressions}, nil
}

// Render substitutes the variables. Results share what holds no variables. Errors are *ResolveError.
func (t *Template) Render(s *Scope) (any, error) {
	if t == nil {
		return nil, nil
	}
	if fixed, ok := t.root.(static); ok {
		return fixed.value, nil
	}
	r := &renderer{scope: s}
	value := t.root.render(r)
	if r.err != nil {
		return nil, r.err
	}
	return value, nil
}

// Static reports whether there are no variables.
func (t *Template) Static() bool {
	return t == nil || isStatic(t.root)
}

// NotIdempotent returns why rendering on the same data can give another result in
// another run; empty if it cannot.
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

// parser compiles one document.
type parser struct {
	doc         any
	prefix      []string
	expressions []*jmespath.Expression
	keeps       bool  // variables stay as they are
	err         error // the first one
}

func (p *parser) parse(value any, path []string) part {
	if most := engine.DefaultLimits().Depth; len(path) > most {
		return p.fail(&limit.Error{What: "levels of nesting in a document", Max: most})
	}
	switch v := value.(type) {
	case string:
		return p.text(v, path)
	case []any:
		return p.list(v, path)
	case map[string]any:
		return p.object(v, path)
	}
	return static{value}
}

func (p *parser) fail(err error) part {
	p.err = cmp.Or(p.err, err)
	return static{}
}

func (p *parser) list(items []any, path []string) part {
	parts, fixed := make(list, len(items)), true
	for i, item := range items {
		parts[i] = p.parse(item, at(path, strconv.Itoa(i)))
		fixed = fixed && isStatic(parts[i])
	}
	return settle(parts, fixed)
}

func (p *parser) object(fields map[string]any, path []string) part {
	object, fixed := make(object, 0, len(fields)), true
	for _, key := range sortedKeys(fields) {
		below := at(path, key)
		f := field{key: key, name: p.text(key, below), value: p.parse(fields[key], below), path: p.pointer(below)}
		fixed = fixed && isStatic(f.name) && isStatic(f.value)
		object = append(object, f)
	}
	return settle(object, fixed)
}

func isStatic(p part) bool { _, ok := p.(static); return ok }

// settle renders at once what has no variables.
func settle(p part, fixed bool) part {
	if !fixed {
		return p
	}
	return static{p.render(&renderer{})}
}

// at extends a path without touching what shares its front.
func at(path []string, name string) []string {
	return append(path[:len(path):len(path)], name)
}

// pointer returns a place as errors name it.
func (p *parser) pointer(path []string) string {
	return "/" + strings.Join(append(p.prefix[:len(p.prefix):len(p.prefix)], path...), "/")
}

func (p *parser) text(text string, path []string) part {
	if strings.Contains(text, "$(") {
		var err error
		if text, err = p.references(text, path); err != nil {
			return p.fail(err)
		}
	}
	if p.keeps || !strings.Contains(text, "{{") {
		return static{text}
	}
	segments, err := scan(text)
	if err != nil {
		return p.fail(fmt.Errorf("at path %s: %w", p.pointer(path), err))
	}
	p.compile(segments, path)
	if plain, ok := plainText(segments); ok {
		return static{plain}
	}
	return leaf{segments: segments, path: p.pointer(path)}
}

// compile compiles the variables of a text.
func (p *parser) compile(segments []segment, path []string) {
	for _, s := range segments {
		v := s.variable
		if v == nil {
			continue
		}
		p.compile(v.pieces, path)
		if err := v.compile(path); err != nil {
			p.fail(&ResolveError{Expression: v.source(), Path: p.pointer(path), Err: err})
		}
		p.expressions = append(p.expressions, v.known()...)
	}
}

// maxQuoted is how much of an expression, and of a path, an error quotes, in bytes.
const maxQuoted = 1000

// ResolveError is a variable of a document that has no value. Its words are Kyverno's; errors.As finds a *jmespath.NotFoundError in it where
// a key is missing.
type ResolveError struct {
	Expression string
	Path       string // such as "/spec/template/metadata/labels/team"
	Err        error
}

// Error names the variable and its place, each cut short.
func (e *ResolveError) Error() string {
	return fmt.Sprintf("failed to resolve %s at path %s: %v", engine.Shorten(e.Expression, maxQuoted), engine.Shorten(e.Path, maxQuoted), e.Err)
}

// Unwrap returns the reason.
func (e *ResolveError) Unwrap() error { return e.Err }
