package cel

import "github.com/google/cel-go/cel"

// Variable compiles a variable.
func (s *Scope) Variable(name, expression string) error {
	_, err := s.variable(Source{Name: name, Text: expression})
	return err
}

// Condition compiles a boolean expression, as Builder.Conditions does.
func (s *Scope) Condition(expression string) (*Expression, error) {
	return s.Compile(expression, cel.BoolType)
}

// Compile compiles an expression, as Builder.Values does.
func (s *Scope) Compile(expression string, want ...*cel.Type) (*Expression, error) {
	return s.add(s.environment.plain, Source{Text: expression}, want...)
}

// ApplyConfiguration and JSONPatch compile a mutation, as Builder.Mutations does.
func (s *Scope) ApplyConfiguration(expression string) (*Expression, error) {
	return s.mutation(Source{Text: expression})
}

func (s *Scope) JSONPatch(expression string) (*Expression, error) {
	return s.mutation(Source{Text: expression, JSONPatch: true})
}

// Condition evaluates a boolean expression.
func (e *Evaluation) Condition(x *Expression) (bool, error) {
	v, err := e.Value(x)
	return v != nil && v.Value() == true, err
}
