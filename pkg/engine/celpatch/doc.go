// Package celpatch compiles the CEL expressions of mutation policies and evaluates
// them on objects, as an API server does. The package patch below it makes new
// objects of what mutations evaluate to; these two are the only packages that
// know k8s.io/apiserver.
//
// A dialect makes one Environment, which says what its expressions may name, and
// from it one Scope for each policy. The Scope compiles the policy's variables
// first, then its conditions and mutations:
//
//	environment, err := celpatch.NewEnvironment(celpatch.Options{Params: true, Authorizer: true})
//	scope, err := environment.NewScope()
//	err = scope.Variable("team", "params.data.team")
//	condition, err := scope.Condition("variables.team != ''")
//	mutation, err := scope.ApplyConfiguration("Object{...}", patch.RefuseAtomic)
//
// What does not compile is a *CompileError with line, column and a picture. For
// each object an Evaluation binds the Input; it is cheap, and belongs to one
// goroutine, while everything compiled serves many:
//
//	evaluation := scope.Evaluate(ctx, celpatch.Input{Object: object, ...}, celpatch.MutationBudget)
//	holds, err := evaluation.Condition(condition)
//	result, err := evaluation.Mutate(mutation, schema.Types)
//
// Variables are computed when they are first used, and once for an Evaluation. A
// MutatingAdmissionPolicy takes a new Evaluation for its match conditions and for
// each mutation, a Kyverno MutatingPolicy goes on with the same one
// (Evaluation.Replace).
//
// Errors of an evaluation are typed. *EvaluationError is the expression's own
// fault on this object, *LimitError a bound that it reached, *UnsupportedError a
// capability or a schema that is not there. The error of a cancelled context
// comes back as it is. Panics of the libraries below become *EvaluationErrors.
package celpatch
