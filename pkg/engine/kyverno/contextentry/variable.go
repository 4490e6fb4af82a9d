package contextentry

import (
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// variable is data that the policy itself computes.
type variable struct {
	value    *variables.Template // nil when there is none
	path     *dataPath
	fallback *variables.Template
}

func decodeVariable(n policydecode.Node) source {
	f := n.Fields()
	v := &variable{value: variables.Decode(f.At("value")), path: decodeDataPath(f.At("jmesPath")), fallback: variables.Decode(f.At("default"))}
	if v.value == nil && v.path == nil && v.fallback == nil {
		n.Fail("needs a value, a jmesPath or a default")
	}
	f.Done()
	return v
}

// load evaluates value, jmesPath and default as Kyverno combines them: the path
// is applied to the value, or else to the whole context; the default stands in
// for a failed path, and for an empty result only where there is no value.
func (v *variable) load(from *Sources, s *variables.Scope) (any, error) {
	var value any
	var err error
	if v.value != nil {
		if value, err = v.value.Render(s); err != nil {
			return nil, err
		}
	}
	if v.path != nil {
		query, err := v.path.expression(s)
		if err != nil {
			return nil, err
		}
		result, err := v.search(s, query, value)
		if from.decisive(err) || (err != nil && v.fallback == nil) {
			return nil, err
		}
		if err == nil && (result != nil || v.value != nil) {
			return notNil(result)
		}
		value = nil
	}
	if value == nil && v.fallback != nil {
		if value, err = v.fallback.Render(s); err != nil {
			return nil, err
		}
	}
	return notNil(value)
}

// asks returns nothing: the expressions of a policy only see what others have loaded.
func (v *variable) asks(Globals) []engine.Ask { return nil }

func (v *variable) notIdempotent() string {
	if reason := v.path.notIdempotent(); reason != "" {
		return reason
	}
	for _, t := range []*variables.Template{v.value, v.fallback} {
		if reason := t.NotIdempotent(); reason != "" {
			return reason
		}
	}
	return ""
}

func (v *variable) search(s *variables.Scope, query *jmespath.Expression, value any) (any, error) {
	if v.value != nil {
		return query.Search(s.Interpreter(), value)
	}
	return s.Query(query)
}

func notNil(value any) (any, error) {
	if value == nil {
		return nil, errors.New("evaluated to nil")
	}
	return value, nil
}
