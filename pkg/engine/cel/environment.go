package cel

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// The limits of an expression, as in an API server.
const (
	maxNesting    = 250
	maxExpression = 100_000 // characters
)

// The names in expressions.
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

// Options declares names in addition to object, oldObject, request, namespaceObject and variables.
type Options struct {
	// Params declares params, and Authorizer declares authorizer and authorizer.requestResource.
	Params, Authorizer bool
	// RequestObjects declares request.object and request.oldObject.
	RequestObjects bool
	// PatchTypes allows all expressions, not only mutations, to construct Object and JSONPatch values.
	PatchTypes bool
	// Unquoted omits expressions from their errors.
	Unquoted bool
	// Extensions are a language's own libraries and variables.
	Extensions []cel.EnvOption
}

// Environment compiles the expressions of a language, with the Options and all versions of Kubernetes' own
// libraries, so that everything stored on a server compiles. It is safe for concurrent use.
type Environment struct {
	plain   *cel.Env
	patches *cel.Env // with the types of patches

	unquoted bool

	mu    sync.Mutex // held during compilation
	scope *Scope     // the current policy's
}

// NewEnvironment returns an environment, which takes some milliseconds. It fails if the Extensions contradict
// each other or existing declarations.
func NewEnvironment(o Options) (*Environment, error) {
	e := &Environment{unquoted: o.Unquoted}
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	variables := apiservercel.NewObjectType(variablesTypeName, map[string]*apiservercel.DeclField{})
	if o.RequestObjects {
		for _, name := range []string{objectName, oldObjectName} {
			request.Fields[name] = apiservercel.NewDeclField(name, apiservercel.DynType, false, nil, nil)
		}
	}
	names := []cel.EnvOption{
		cel.ParserRecursionLimit(maxNesting), cel.ParserExpressionSizeLimit(maxExpression),
		cel.EnableMacroCallTracking(),
		cel.Variable(objectName, cel.DynType), cel.Variable(oldObjectName, cel.DynType),
		cel.Variable(namespaceName, namespace.CelType()), cel.Variable(requestName, request.CelType()),
		cel.Variable(variablesName, variables.CelType()),
	}
	if o.Params {
		names = append(names, cel.Variable(paramsName, cel.DynType))
	}
	if o.Authorizer {
		names = append(names, cel.Variable(authorizerName, library.AuthorizerType),
			cel.Variable(requestResourceName, library.ResourceCheckType))
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	provider := apiservercel.NewDeclTypeProvider(namespace, request, variables)
	provider.SetRecognizeKeywordAsFieldName(true)
	declared, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	// Each step wraps the previous step's types, so they cannot be merged.
	plain, err := base.Extend(append(names, declared...)...)
	if err != nil {
		return nil, err
	}
	patches, err := plain.Extend(common.ResolverEnvOption(&patchTypes{}), library.JSONPatch())
	if err != nil {
		return nil, err
	}
	if e.patches, err = e.complete(patches, o.Extensions); err != nil {
		return nil, err
	}
	if e.plain = e.patches; !o.PatchTypes {
		e.plain, err = e.complete(plain, o.Extensions)
	}
	return e, err
}

// complete adds a language's extensions and the variables of policies.
func (e *Environment) complete(env *cel.Env, extensions []cel.EnvOption) (*cel.Env, error) {
	env, err := env.Extend(extensions...)
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.CustomTypeProvider(variableTypes{Provider: env.CELTypeProvider(), environment: e}))
}

// variableTypes has the types of the current policy's variables, so that policies share an environment: a
// separate one would take the memory of a hundred expressions.
type variableTypes struct {
	types.Provider
	environment *Environment
}

// FindStructFieldType implements types.Provider.
func (t variableTypes) FindStructFieldType(of, field string) (*types.FieldType, bool) {
	if of != variablesTypeName {
		return t.Provider.FindStructFieldType(of, field)
	}
	name, ok := apiservercel.Unescape(field)
	v := t.environment.scope.named(name)
	if !ok || v == nil {
		return nil, false
	}
	return &types.FieldType{Type: v.output}, true
}

// Scope compiles the expressions of one policy, which share its variables. It serves one goroutine during
// compilation, and many afterwards.
type Scope struct {
	environment *Environment
	failed      func(policydecode.Node, error)
	variables   []*Expression // without a program after an error
	compiled    []*Expression // all without an error
}

// NewScope returns a scope without variables, whose errors go to failed.
func (e *Environment) NewScope(failed func(policydecode.Node, error)) *Scope {
	return &Scope{environment: e, failed: failed}
}

// Variables compiles variables for later expressions, as variables.NAME. A name is declared even after an
// error, so that one mistake is reported once.
func (s *Scope) Variables(all []Source) {
	for _, v := range all {
		x := &Expression{Source: v, output: cel.DynType}
		if compiled := s.add([]Source{v}, s.environment.plain); len(compiled) > 0 {
			x = compiled[0]
		}
		x.output = declaredType(x.output)
		s.variables = append(s.variables, x)
	}
}

// Conditions compiles match conditions.
func (s *Scope) Conditions(all []Source) []*Expression {
	return s.add(all, s.environment.plain, cel.BoolType)
}

// Mutations compiles expressions that return Object{...}, which is merged into the object, or a list of
// JSONPatch{...}.
func (s *Scope) Mutations(all []Source) (out []*Expression) {
	for _, x := range all {
		want := applyConfigurations
		if x.JSONPatch {
			want = jsonPatches
		}
		out = append(out, s.add([]Source{x}, s.environment.patches, want)...)
	}
	return out
}

// Values compiles expressions whose result must have exactly one of the types.
func (s *Scope) Values(all []Source, want ...*cel.Type) []*Expression {
	return s.add(all, s.environment.plain, want...)
}

// add compiles sources; one without a string has been reported.
func (s *Scope) add(all []Source, in *cel.Env, want ...*cel.Type) (out []*Expression) {
	for _, source := range all {
		if source.Text == "" {
			continue
		}
		x, err := s.compile(in, source, want)
		if err != nil && source.JSONPatch && plainOperation.MatchString(source.Text) {
			err = fmt.Errorf("%w\n  an operation is not a map: write JSONPatch{op: \"add\", path: \"/spec/...\", value: ...}", err)
		}
		if err != nil {
			s.failed(source.Node, err)
			continue
		}
		s.compiled, out = append(s.compiled, x), append(out, x)
	}
	return out
}

// plainOperation matches a JSON patch operation written as a map.
var plainOperation = regexp.MustCompile(`\{\s*["']op["']\s*:`)

// named returns the last variable with a name, or nil.
func (s *Scope) named(name string) *Expression {
	for _, x := range slices.Backward(s.variables) {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// Join adds the expressions of another scope to the policy.
func (s *Scope) Join(other *Scope) { s.compiled = append(s.compiled, other.compiled...) }

// Expression is a compiled expression.
type Expression struct {
	Source
	program cel.Program
	output  *cel.Type // the result type
	uses    map[string]bool
	calls   []Call
	paths   []string // the fields in a patch
	reads   Reads
	writes  engine.Writes // of a patch

	changing string // the field that a match condition requires to change
	slips    []string
}

func (s *Scope) compile(in *cel.Env, source Source, want []*cel.Type) (x *Expression, err error) {
	text := source.Text
	defer func() {
		if p := recover(); p != nil { // such as for {?"k": m[?"k"]} if the type of m is unknown
			x, err = nil, asWhole(text, fmt.Sprintf("makes the CEL library panic, which API servers use as well: %v", p))
		}
	}()
	s.environment.mu.Lock()
	defer s.environment.mu.Unlock()
	s.environment.scope = s
	checked, issues := in.Compile(text)
	if issues.Err() != nil {
		return nil, compileError(text, issues)
	}
	output, root := checked.OutputType(), ast.NavigateAST(checked.NativeRep())
	if len(want) > 0 && !slices.ContainsFunc(want, output.IsExactType) {
		return nil, asWhole(text, wrongType(output, want))
	}
	x = &Expression{Source: source, output: output, writes: writesOf(root, output)}
	x.describe(root)
	if x.program, err = in.Program(checked, cel.InterruptCheckFrequency(celconfig.CheckFrequency)); err != nil {
		return nil, asWhole(text, err.Error())
	}
	if slices.Contains(want, cel.BoolType) { // a condition
		x.judge(root)
	}
	return x, nil
}

// declaredType returns the type to declare for a variable of type t, as precisely as a declaration can
// express it, because a literal may only hold elements of one type.
func declaredType(t *cel.Type) *cel.Type {
	switch t {
	case cel.AnyType, cel.BoolType, cel.BytesType, cel.DoubleType, cel.DurationType,
		cel.IntType, cel.NullType, cel.StringType, cel.TimestampType, cel.UintType:
		return t
	}
	switch parameters := t.Parameters(); {
	case t.Kind() == types.ListKind && len(parameters) == 1:
		return cel.ListType(declaredType(parameters[0]))
	case t.Kind() == types.MapKind && len(parameters) == 2:
		return cel.MapType(declaredType(parameters[0]), declaredType(parameters[1]))
	}
	return cel.DynType
}
