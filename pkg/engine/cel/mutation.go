package cel

import (
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Mutation is a compiled expression whose result is a patch.
type Mutation struct {
	*Expression
	apply func(e *Evaluation, v ref.Val, types managedfields.TypeConverter) (Result, error)
}

// Result is a mutated object.
type Result struct {
	// Object is the object after the mutation. It may share data with the object that
	// the mutation was given, and is that very object where a test operation of a JSON
	// patch does not hold.
	Object map[string]any
	// Warnings say what other versions of an API server do differently.
	Warnings []engine.Warning
	// Read is the part of the object that a JSON patch was about, and Written what became of it.
	Read, Written map[string]any
}

// What the expressions of mutations evaluate to.
//
//nolint:gochecknoglobals // which nobody changes
var (
	applyConfigurations = []*cel.Type{cel.ObjectType(mutation.ObjectTypeName)}
	jsonPatches         = []*cel.Type{cel.ListType(cel.ObjectType(mutation.JSONPatchTypeName))}
)

// ApplyConfiguration compiles an expression that evaluates to Object{...}, which
// is merged into the object. The error is a *CompileError.
func (s *Scope) ApplyConfiguration(expression string, a Atomics) (*Mutation, error) {
	x, err := s.compile(s.environment.patches, expression, applyConfigurations)
	if err != nil {
		return nil, err
	}
	return &Mutation{Expression: x, apply: func(e *Evaluation, v ref.Val, types managedfields.TypeConverter) (Result, error) {
		return e.merge(v, types, a)
	}}, nil
}

// JSONPatch compiles an expression that evaluates to a list of JSONPatch{...}.
// The error is a *CompileError.
func (s *Scope) JSONPatch(expression string) (*Mutation, error) {
	x, err := s.compile(s.environment.patches, expression, jsonPatches)
	if err != nil {
		return nil, err
	}
	return &Mutation{Expression: x, apply: func(e *Evaluation, v ref.Val, _ managedfields.TypeConverter) (Result, error) {
		return e.patch(v)
	}}, nil
}

// Mutate evaluates a mutation and applies its patch to the object of the
// evaluation, which stays as it is: Replace continues with the result. Types are those
// of the object's kind; a mutation that needs them and gets nil is unsupported.
func (e *Evaluation) Mutate(m *Mutation, types managedfields.TypeConverter) (r Result, err error) {
	v, err := e.Value(m.Expression)
	if err != nil {
		return Result{}, err
	}
	defer recoverAs(m.Expression, &err)
	if err = payCopy(4)(e.budget, []ref.Val{v}); err == nil {
		r, err = m.apply(e, v, types)
	}
	if err != nil {
		return Result{}, e.patchFailed(m, err)
	}
	return r, nil
}

// patchFailed returns the error of a patch that cannot be applied.
func (e *Evaluation) patchFailed(m *Mutation, err error) error {
	var exceeded *engine.LimitError
	if errors.As(err, &exceeded) {
		return e.stop(m.Expression, exceeded)
	}
	var noSchema *noSchemaError
	if errors.As(err, &noSchema) {
		return &UnsupportedError{Reason: noSchema.Error()}
	}
	return &EvaluationError{Expression: m.text, Err: err}
}
