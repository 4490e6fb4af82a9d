package variables

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// part is a piece of a template.
type part interface {
	render(*renderer) any
}

type (
	static struct{ value any } // has no variables
	leaf   struct {
		segments []segment
		path     string
	}
	list   []part
	object []field
	field  struct {
		key   string
		name  part
		value part
		path  string
	}
)

// renderer is one rendering.
type renderer struct {
	scope   *Scope
	written int   // bytes of text
	err     error // the first one; nothing is evaluated after it
}

func (r *renderer) fail(expression, path string, err error) {
	if r.err == nil {
		r.err = &ResolveError{Expression: expression, Path: path, Err: err}
	}
}

func (p static) render(*renderer) any { return p.value }

func (p list) render(r *renderer) any {
	items := make([]any, len(p))
	for i, child := range p {
		items[i] = child.render(r)
	}
	return items
}

func (p object) render(r *renderer) any {
	fields := make(map[string]any, len(p))
	for i := range p {
		fields[p[i].rendered(r)] = p[i].value.render(r)
	}
	return fields
}

// rendered is the key of a field. One whose variable is null stays as it is, as in Kyverno.
func (f *field) rendered(r *renderer) string {
	switch name := f.name.render(r).(type) {
	case string:
		return name
	case nil:
	default:
		r.fail(f.key, f.path, fmt.Errorf("a key must be a string, not %T", name))
	}
	return f.key
}

func (p leaf) render(r *renderer) any {
	if len(p.segments) == 1 { // a single segment is a variable, or this were static
		return r.value(p.segments[0].variable, p.path)
	}
	return r.text(p.segments, p.path)
}

// text joins segments; values that are no strings are inserted as JSON.
func (r *renderer) text(segments []segment, path string) string {
	var b strings.Builder
	for _, s := range segments {
		text := s.text
		if s.variable != nil {
			value := r.value(s.variable, path)
			var isText bool
			var err error
			if text, isText = value.(string); !isText {
				text, err = jmespath.ToJSON(value)
			}
			r.written += len(text)
			if err = cmp.Or(err, limit.Size(r.written)); err != nil {
				r.fail(s.variable.source(), path, err)
				return ""
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

// value evaluates one variable.
func (r *renderer) value(v *variable, path string) any {
	expr := v.expr
	if v.pieces != nil {
		text := trimmed(r.text(v.pieces, path))
		if r.err != nil {
			return nil
		}
		var err error
		if expr, err = jmespath.Compile(text); err != nil {
			r.fail(text, path, err)
		}
	}
	if r.err != nil {
		return nil
	}
	if v.onTarget != nil {
		if _, found, err := r.scope.lookup("target"); found && err == nil {
			expr = v.onTarget
		}
	}
	value, err := r.scope.Query(expr)
	if err != nil {
		r.fail(expr.String(), path, err)
	}
	return value
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
