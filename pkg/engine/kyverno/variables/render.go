package variables

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// part is a piece of a template.
type part interface {
	render(*renderer) (any, error)
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
	written int // bytes of text
}

func (p static) render(*renderer) (any, error) { return p.value, nil }

func (p list) render(r *renderer) (any, error) {
	items := make([]any, len(p))
	for i, child := range p {
		item, err := child.render(r)
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	return items, nil
}

func (p object) render(r *renderer) (any, error) {
	fields := make(map[string]any, len(p))
	for i := range p {
		key, err := p[i].rendered(r)
		if err != nil {
			return nil, err
		}
		if fields[key], err = p[i].value.render(r); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// rendered is the key of a field. One whose variable is null stays as it is, as in Kyverno.
func (f *field) rendered(r *renderer) (string, error) {
	name, err := f.name.render(r)
	if err != nil || name == nil {
		return f.key, err
	}
	key, ok := name.(string)
	if !ok {
		return "", &ResolveError{Expression: f.key, Path: f.path, Err: fmt.Errorf("a key must be a string, not %T", name)}
	}
	return key, nil
}

func (p leaf) render(r *renderer) (any, error) {
	if len(p.segments) == 1 { // a single segment is a variable, or this were static
		return r.value(p.segments[0].variable, p.path)
	}
	return r.text(p.segments, p.path)
}

// text joins segments; values that are no texts are inserted as JSON.
func (r *renderer) text(segments []segment, path string) (string, error) {
	var b strings.Builder
	for _, s := range segments {
		if s.variable == nil {
			b.WriteString(s.text)
			continue
		}
		value, err := r.value(s.variable, path)
		if err != nil {
			return "", err
		}
		text, ok := value.(string)
		if !ok {
			if text, err = jmespath.ToJSON(value); err != nil {
				return "", &ResolveError{Expression: s.variable.source(), Path: path, Err: err}
			}
		}
		r.written += len(text)
		if err := limit.Size(r.written); err != nil {
			return "", &ResolveError{Expression: s.variable.source(), Path: path, Err: err}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// value evaluates one variable.
func (r *renderer) value(v *variable, path string) (any, error) {
	expr, err := r.expression(v, path)
	if err != nil {
		return nil, err
	}
	value, err := r.scope.Query(expr)
	if err != nil {
		return nil, &ResolveError{Expression: expr.String(), Path: path, Err: err}
	}
	return value, nil
}

// expression picks a variable's compiled expression, or puts its text together.
func (r *renderer) expression(v *variable, path string) (*jmespath.Expression, error) {
	if v.pieces != nil {
		text, err := r.text(v.pieces, path)
		if err != nil {
			return nil, err
		}
		text = trimmed(text)
		expr, err := r.scope.Compile(text)
		if err != nil {
			return nil, &ResolveError{Expression: text, Path: path, Err: err}
		}
		return expr, nil
	}
	if v.onTarget != nil {
		if _, found, err := r.scope.lookup("target"); found && err == nil {
			return v.onTarget, nil
		}
	}
	return v.expr, nil
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
