package cel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/interpreter"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// The bounds of an expression, which are an API server's.
const (
	maxNesting    = 250
	maxExpression = 100_000 // characters
)

// The names that expressions see.
const (
	objectName          = plugincel.ObjectVarName
	oldObjectName       = plugincel.OldObjectVarName
	requestName         = plugincel.RequestVarName
	namespaceName       = plugincel.NamespaceVarName
	paramsName          = plugincel.ParamsVarName
	authorizerName      = plugincel.AuthorizerVarName
	requestResourceName = plugincel.RequestResourceAuthorizerVarName
	variablesName       = plugincel.VariableVarName
	variablesTypeName   = "kubernetes.variables"
)

// Options declares what expressions may name beside object, oldObject, request,
// namespaceObject and variables.
type Options struct {
	// Params declares params, and Authorizer declares authorizer and
	// authorizer.requestResource.
	Params, Authorizer bool
	// RequestObjects declares request.object and request.oldObject.
	RequestObjects bool
	// PatchTypes allows all expressions, not only mutations, to construct values of
	// the types Object and JSONPatch.
	PatchTypes bool
	// Extensions are a language's own libraries and variables.
	Extensions []cel.EnvOption
}

// Environment has what the expressions of a language are compiled against: Kubernetes'
// own libraries of all versions, so that whatever a server has stored compiles, and
// what the Options add. It is immutable and safe for concurrent use.
type Environment struct {
	plain   *declarations
	patches *declarations          // the types of patches too
	none    *apiservercel.DeclType // variables without a field
	plans   atomic.Int64           // how many programs were made to be kept

	// To explain conditions that are false:
	parser func() (*cel.Env, error) // keeps macros as they were written
}

// declarations are what expressions may name. Policies without variables share one checker,
// and all policies a planner: they take far more memory than an expression.
type declarations struct {
	base    *cel.Env // without variables
	planner *planner // in an environment with variables that has no field

	mu       sync.Mutex
	checkers map[string]*cel.Env // those made last, by the names and types of the variables
}

// maxCheckers is how many checkers are kept for policies with variables. Each takes as long as a hundred expressions.
const maxCheckers = 16

func newDeclarations(base *cel.Env, functions interpreter.Dispatcher) (*declarations, error) {
	shared, err := withVariables(base, noVariables())
	if err != nil {
		return nil, err
	}
	planner, err := newPlanner(shared, functions)
	return &declarations{base: base, planner: planner, checkers: map[string]*cel.Env{}}, err
}

// checker returns what an expression is checked against that may use these variables.
func (d *declarations) checker(variables map[string]*apiservercel.DeclField) (*cel.Env, error) {
	if len(variables) == 0 {
		return d.planner.in, nil
	}
	var id strings.Builder
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(&id, "%q %s\n", name, variables[name].Type.CelType())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.checkers[id.String()]; known != nil {
		return known, nil
	}
	own := noVariables()
	own.Fields = variables
	made, err := withVariables(d.base, own)
	if err != nil {
		return nil, err
	}
	if len(d.checkers) == maxCheckers {
		clear(d.checkers)
	}
	d.checkers[id.String()] = made
	return made, nil
}

func withVariables(base *cel.Env, declared *apiservercel.DeclType) (*cel.Env, error) {
	return extend(base, []cel.EnvOption{cel.Variable(variablesName, declared.CelType())}, declared)
}

// NewEnvironment returns an environment; that takes some milliseconds. It fails where the
// Extensions contradict each other or what is declared already.
func NewEnvironment(o Options) (*Environment, error) {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	variables := []cel.EnvOption{
		cel.ParserRecursionLimit(maxNesting), cel.ParserExpressionSizeLimit(maxExpression),
		cel.Variable(objectName, cel.DynType),
		cel.Variable(oldObjectName, cel.DynType),
		cel.Variable(namespaceName, namespace.CelType()),
		cel.Variable(requestName, request.CelType()),
	}
	if o.RequestObjects {
		for _, name := range []string{objectName, oldObjectName} {
			request.Fields[name] = apiservercel.NewDeclField(name, apiservercel.DynType, false, nil, nil)
		}
	}
	if o.Params {
		variables = append(variables, cel.Variable(paramsName, cel.DynType))
	}
	if o.Authorizer {
		variables = append(variables,
			cel.Variable(authorizerName, library.AuthorizerType), cel.Variable(requestResourceName, library.ResourceCheckType))
	}
	// Each step wraps the types of the step before, so they cannot be one.
	plain, err := extend(base, variables, namespace, request)
	if err != nil {
		return nil, err
	}
	patches, err := extend(plain, patchEnvOptions())
	if err != nil {
		return nil, err
	}
	if patches, err = extend(patches, o.Extensions); err != nil {
		return nil, err
	}
	functions, err := functionsOf(patches)
	if err != nil {
		return nil, err
	}
	e := &Environment{none: noVariables()}
	e.parser = sync.OnceValues(func() (*cel.Env, error) { return patches.Extend(cel.EnableMacroCallTracking()) })
	if e.patches, err = newDeclarations(patches, functions); err != nil {
		return nil, err
	}
	if e.plain = e.patches; o.PatchTypes {
		return e, nil
	}
	if plain, err = extend(plain, o.Extensions); err != nil {
		return nil, err
	}
	e.plain, err = newDeclarations(plain, functions)
	return e, err
}

// extend adds options, and types whose fields are declared.
func extend(base *cel.Env, options []cel.EnvOption, types ...*apiservercel.DeclType) (*cel.Env, error) {
	if len(options)+len(types) == 0 {
		return base, nil
	}
	if len(types) > 0 {
		provider := apiservercel.NewDeclTypeProvider(types...)
		provider.SetRecognizeKeywordAsFieldName(true)
		typeOptions, err := provider.EnvOptions(base.CELTypeProvider())
		if err != nil {
			return nil, fmt.Errorf("declare the types of CEL expressions: %w", err)
		}
		options = append(options[:len(options):len(options)], typeOptions...)
	}
	env, err := base.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("set up the environment of CEL expressions: %w", err)
	}
	return env, nil
}

// Functions are those that expressions of the environment can call.
func (e *Environment) Functions() map[string]*decls.FunctionDecl { return e.patches.base.Functions() }
