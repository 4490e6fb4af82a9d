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

const variablesTypeName = "kubernetes.variables"

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
	options Options
	plain   *cel.Env
	patches *cel.Env // with the types of patches

	mu sync.Mutex // held during compilation
	// variables has the fields of the current policy's variables, so that policies share an environment: a
	// separate one would take the memory of a hundred expressions.
	variables *apiservercel.DeclType
}

// NewEnvironment returns an environment, which takes some milliseconds. It fails if the Extensions contradict
// each other or existing declarations.
func NewEnvironment(o Options) (*Environment, error) {
	e := &Environment{options: o}
	e.variables = apiservercel.NewObjectType(variablesTypeName, map[string]*apiservercel.DeclField{})
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	if o.RequestObjects {
		for _, name := range []string{plugincel.ObjectVarName, plugincel.OldObjectVarName} {
			request.Fields[name] = apiservercel.NewDeclField(name, apiservercel.DynType, false, nil, nil)
		}
	}
	names := []cel.EnvOption{
		cel.ParserRecursionLimit(maxNesting), cel.ParserExpressionSizeLimit(maxExpression),
		cel.EnableMacroCallTracking(),
		cel.Variable(plugincel.ObjectVarName, cel.DynType), cel.Variable(plugincel.OldObjectVarName, cel.DynType),
		cel.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		cel.Variable(plugincel.RequestVarName, request.CelType()),
		cel.Variable(plugincel.VariableVarName, e.variables.CelType()),
	}
	if o.Params {
		names = append(names, cel.Variable(plugincel.ParamsVarName, cel.DynType))
	}
	if o.Authorizer {
		names = append(names, cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
			cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	provider := apiservercel.NewDeclTypeProvider(namespace, request, e.variables)
	provider.SetRecognizeKeywordAsFieldName(true)
	declared, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	names = append(names, declared...)
	patches := []cel.EnvOption{common.ResolverEnvOption(&patchTypes{}), library.JSONPatch()}
	if e.patches, err = extend(base, names, patches, o.Extensions); err != nil {
		return nil, err
	}
	if e.plain = e.patches; !o.PatchTypes {
		e.plain, err = extend(base, names, o.Extensions)
	}
	return e, err
}

// extend extends an environment in steps, which cannot be merged: each wraps the types of those before.
func extend(env *cel.Env, steps ...[]cel.EnvOption) (_ *cel.Env, err error) {
	for _, options := range steps {
		if env, err = env.Extend(options...); err != nil {
			return nil, err
		}
	}
	return env.Extend() // a library that extends it itself has ended the declarations
}

// Scope compiles the expressions of one policy, which share its variables. It serves one goroutine during
// compilation, and many afterwards.
type Scope struct {
	environment *Environment
	failed      func(policydecode.Node, error)
	variables   []*Expression
	types       map[string]*apiservercel.DeclField // of variables
	compiled    []*Expression                      // with variables
}

// NewScope returns a scope without variables, whose errors go to failed.
func (e *Environment) NewScope(failed func(policydecode.Node, error)) *Scope {
	return &Scope{environment: e, failed: failed, types: map[string]*apiservercel.DeclField{}}
}

// Variables compiles variables for later expressions, as variables.NAME. A name is declared even after an
// error, so that one mistake is reported once.
func (s *Scope) Variables(all []Source) {
	for _, v := range all {
		output := cel.DynType
		if compiled := s.add([]Source{v}, s.environment.plain); len(compiled) > 0 {
			s.variables, output = append(s.variables, compiled[0]), declaredType(compiled[0].output)
		}
		declared := apiservercel.NewSimpleTypeWithMinSize(output.String(), output, nil, 0)
		s.types[v.Name] = apiservercel.NewDeclField(v.Name, declared, true, nil, nil)
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
	defer func() {
		if p := recover(); p != nil { // such as for {?"k": m[?"k"]} if the type of m is unknown
			x, err = nil, asWhole(source.Text, fmt.Sprintf("makes the CEL library panic, which API servers use as well: %v", p))
		}
	}()
	s.environment.mu.Lock()
	defer s.environment.mu.Unlock()
	s.environment.variables.Fields = s.types
	checked, issues := in.Compile(source.Text)
	if issues.Err() != nil {
		return nil, compileError(source.Text, issues)
	}
	output, root := checked.OutputType(), ast.NavigateAST(checked.NativeRep())
	if len(want) > 0 && !slices.ContainsFunc(want, output.IsExactType) {
		return nil, asWhole(source.Text, wrongType(output, want))
	}
	x = &Expression{Source: source, output: output, writes: writesOf(root, output)}
	x.describe(root)
	if x.program, err = in.Program(checked, cel.InterruptCheckFrequency(celconfig.CheckFrequency)); err != nil {
		return nil, asWhole(source.Text, err.Error())
	}
	if slices.Contains(want, cel.BoolType) { // a condition
		x.judge(root)
	}
	return x, nil
}

// declaredType returns the type to declare for a variable of type t, as precisely as a declaration can
// express it, because a literal may only hold elements of one type.
func declaredType(t *cel.Type) *cel.Type {
	switch parameters := t.Parameters(); t.Kind() {
	case types.AnyKind, types.BoolKind, types.BytesKind, types.DoubleKind, types.DurationKind, types.IntKind,
		types.NullTypeKind, types.StringKind, types.TimestampKind, types.UintKind:
		return t
	case types.ListKind:
		return cel.ListType(declaredType(parameters[0]))
	case types.MapKind:
		return cel.MapType(declaredType(parameters[0]), declaredType(parameters[1]))
	}
	return cel.DynType
}
