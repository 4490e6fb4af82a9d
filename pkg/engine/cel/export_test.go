package cel

import (
	"errors"

	"github.com/google/cel-go/cel"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// only compiles one expression, and returns its error.
func (s *Scope) only(compile func() []*Expression) (x *Expression, err error) {
	s.failed = func(_ policydecode.Node, e error) { err = e }
	all := compile()
	switch {
	case len(all) > 0:
		x = all[0]
	case err == nil:
		err = errors.New("there is no expression")
	}
	return x, err
}

// Variable compiles a variable.
func (s *Scope) Variable(name, expression string) (err error) {
	s.failed = func(_ policydecode.Node, e error) { err = e }
	s.Variables([]Source{{Name: name, Text: expression}})
	return err
}

// Condition compiles a boolean expression.
func (s *Scope) Condition(expression string) (*Expression, error) {
	return s.only(func() []*Expression { return s.Conditions([]Source{{Text: expression}}) })
}

// Compile compiles an expression.
func (s *Scope) Compile(expression string, want ...*cel.Type) (*Expression, error) {
	return s.only(func() []*Expression { return s.Values([]Source{{Text: expression}}, want...) })
}

// ApplyConfiguration and JSONPatch compile a mutation.
func (s *Scope) ApplyConfiguration(expression string) (*Expression, error) {
	return s.only(func() []*Expression { return s.Mutations([]Source{{Text: expression}}) })
}

func (s *Scope) JSONPatch(expression string) (*Expression, error) {
	return s.only(func() []*Expression { return s.Mutations([]Source{{Text: expression, JSONPatch: true}}) })
}

// Condition evaluates a boolean expression.
func (e *Evaluation) Condition(x *Expression) (bool, error) {
	v, err := e.Value(x)
	return v != nil && v.Value() == true, err
}
