package cel

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
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
	// Unquoted leaves the text of an expression out of its errors.
	Unquoted bool
	// Extensions are a language's own libraries and variables.
	Extensions []cel.EnvOption
}

// Environment has what the expressions of a language are compiled against: Kubernetes'
// own libraries of all versions, so that whatever a server has stored compiles, and
// what the Options add. It is safe for concurrent use.
type Environment struct {
	plain   *cel.Env
	patches *cel.Env // the types of patches too

	unquoted bool

	mu    sync.Mutex // held while an expression is compiled
	scope *Scope     // whose variables it may use
}

// NewEnvironment returns an environment; that takes some milliseconds. It fails where the
// Extensions contradict each other or what is declared already.
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
		cel.ParserRecursionLimit(maxNesting), cel.ParserExpressionSizeLimit(maxExpression), cel.EnableMacroCallTracking(),
		cel.Variable(objectName, cel.DynType), cel.Variable(oldObjectName, cel.DynType),
		cel.Variable(namespaceName, namespace.CelType()), cel.Variable(requestName, request.CelType()),
		cel.Variable(variablesName, variables.CelType()),
	}
	if o.Params {
		names = append(names, cel.Variable(paramsName, cel.DynType))
	}
	if o.Authorizer {
		names = append(names, cel.Variable(authorizerName, library.AuthorizerType), cel.Variable(requestResourceName, library.ResourceCheckType))
	}
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()
	provider := apiservercel.NewDeclTypeProvider(namespace, request, variables)
	provider.SetRecognizeKeywordAsFieldName(true)
	declared, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	// Each step wraps the types of the step before, so they cannot be one.
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

// complete adds a language's own extensions, and the variables of policies.
func (e *Environment) complete(env *cel.Env, extensions []cel.EnvOption) (*cel.Env, error) {
	env, err := env.Extend(extensions...)
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.CustomTypeProvider(variableTypes{Provider: env.CELTypeProvider(), environment: e}))
}

// variableTypes knows the types of the variables of the policy that is compiled, so that all
// policies share an environment: one of its own takes as much memory as a hundred expressions.
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

// Functions are those that expressions of the environment can call.
func (e *Environment) Functions() map[string]*decls.FunctionDecl { return e.patches.Functions() }
