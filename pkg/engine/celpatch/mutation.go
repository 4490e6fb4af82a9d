package celpatch

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/cel/mutation"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Mutation is a compiled expression whose result is a patch.
type Mutation struct {
	*Expression
	apply func(e *Evaluation, v ref.Val, types managedfields.TypeConverter) (Result, error)
}

// Result is what became of an object.
type Result struct {
	// Object is the object as it is after the mutation. It may share data with
	// what the mutation was given; it is the very object where a test operation
	// of a JSON patch does not hold.
	Object map[string]any
	// Warnings tell what other versions of an API server do differently.
	Warnings []engine.Warning
}

// Merge says how an apply configuration is merged.
type Merge int

const (
	// RefuseAtomic fails on an apply configuration that holds an atomic list, map
	// or struct, as a MutatingAdmissionPolicy does: what such a value leaves out
	// would be lost.
	RefuseAtomic Merge = iota
	// ReplaceAtomic replaces atomic values, as server-side apply does.
	ReplaceAtomic
)

// ApplyConfiguration compiles an expression that evaluates to Object{...}, which
// is merged into the object. The error is a *CompileError.
func (s *Scope) ApplyConfiguration(expression string, m Merge) (*Mutation, error) {
	x, err := compile(s.patches, expression, []*cel.Type{cel.ObjectType(mutation.ObjectTypeName)})
	if err != nil {
		return nil, err
	}
	return &Mutation{Expression: x, apply: func(e *Evaluation, v ref.Val, types managedfields.TypeConverter) (Result, error) {
		return merge(e.activation.input.Object, v, types, m)
	}}, nil
}

// JSONPatch compiles an expression that evaluates to a list of JSONPatch{...}.
// The error is a *CompileError.
func (s *Scope) JSONPatch(expression string) (*Mutation, error) {
	x, err := compile(s.patches, expression, []*cel.Type{cel.ListType(cel.ObjectType(mutation.JSONPatchTypeName))})
	if err != nil {
		return nil, err
	}
	return &Mutation{Expression: x, apply: func(e *Evaluation, v ref.Val, _ managedfields.TypeConverter) (Result, error) {
		return patch(e.activation.input.Object, v)
	}}, nil
}

// Mutate evaluates a mutation and applies its patch to the object of the
// evaluation, which stays as it is: Replace goes on with the result. Types are
// those of the object's kind; a mutation that needs them and gets nil is
// unsupported.
func (e *Evaluation) Mutate(m *Mutation, types managedfields.TypeConverter) (r Result, err error) {
	v, err := e.Value(m.Expression)
	if err != nil {
		return Result{}, err
	}
	defer recoverAs(m.Expression, &err)
	if r, err = m.apply(e, v, types); err != nil {
		return Result{}, e.applyFailed(m, err)
	}
	return r, nil
}

func (e *Evaluation) applyFailed(m *Mutation, err error) error {
	switch err.(type) { //nolint:errorlint // these are never wrapped here
	case *UnsupportedError, *LimitError:
		return err
	}
	return &EvaluationError{Expression: m.text, Err: err}
}

// asObject is the object for those who ask for its metadata.
func asObject(m map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: m}
}
