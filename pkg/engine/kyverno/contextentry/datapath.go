package contextentry

import (
	"fmt"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// dataPath is the jmesPath of a context entry, which may hold variables. A nil one
// takes the data as it is.
type dataPath struct {
	template *variables.Template
	compiled *jmespath.Expression // when there are no variables
}

func decodeDataPath(n policydecode.Node) *dataPath {
	if n.Text() == "" {
		return nil
	}
	p := &dataPath{template: variables.Decode(n)}
	if p.template != nil && p.template.Static() {
		compiled, err := jmespath.Compile(n.Text())
		if err != nil {
			n.Fail("%w", err)
		}
		p.compiled = compiled
	}
	return p
}

// expression is the path with its variables resolved.
func (p *dataPath) expression(s *variables.Scope) (*jmespath.Expression, error) {
	if p.compiled != nil {
		return p.compiled, nil
	}
	rendered, err := p.template.Render(s)
	if err != nil {
		return nil, err
	}
	path, ok := rendered.(string)
	if !ok {
		return nil, fmt.Errorf("jmesPath must be a string, not %s", policydecode.TypeName(rendered))
	}
	return s.Compile(path)
}

// pick applies the path to data that has been read.
func (p *dataPath) pick(s *variables.Scope, data any) (any, error) {
	if p == nil {
		return data, nil
	}
	expression, err := p.expression(s)
	if err != nil {
		return nil, fmt.Errorf("failed to substitute variables in jmesPath: %w", err)
	}
	result, err := expression.Search(s.Interpreter(), data)
	s.Picked(expression)
	if err != nil {
		return nil, fmt.Errorf("failed to apply JMESPath %s: %w", expression, err)
	}
	return result, nil
}

func (p *dataPath) notIdempotent() string {
	switch {
	case p == nil:
		return ""
	case p.compiled != nil:
		return p.compiled.NotIdempotent()
	default:
		return p.template.NotIdempotent()
	}
}
