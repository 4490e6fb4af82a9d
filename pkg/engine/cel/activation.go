package cel

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/lazy"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Input is what expressions see. A nil object is null for them.
type Input struct {
	Object, OldObject map[string]any
	// Request is what authorizer.requestResource is about.
	Request *Request
	// RequestMap is what expressions see as request.
	RequestMap map[string]any
	// Namespace is the Namespace of the object, nil for none.
	Namespace map[string]any
	Params    map[string]any
	// Access answers authorizer; where it is nil, expressions that ask are unsupported.
	Access engine.Authorizer
	// User is whom authorizer and authorizer.requestResource ask for.
	User engine.UserInfo
	// Explain adds the values of the operands to conditions that are false.
	Explain bool
	// Extra are the values of a language's own variables.
	Extra map[string]any
}

// activation resolves names to values, each when it is first used.
type activation struct {
	evaluation *Evaluation
	scope      *Scope
	input      Input
	values     map[string]ref.Val
}

var _ cel.Activation = (*activation)(nil)

// Parent returns nil: all names are here.
func (*activation) Parent() cel.Activation { return nil }

// ResolveName returns the value of a name.
func (a *activation) ResolveName(name string) (any, bool) {
	if v, ok := a.values[name]; ok {
		return v, true
	}
	var v ref.Val
	switch name {
	case objectName:
		v = a.valueOf(a.input.Object)
	case oldObjectName:
		v = a.valueOf(a.input.OldObject)
	case paramsName:
		v = a.valueOf(a.input.Params)
	case requestName:
		v = a.valueOf(a.input.RequestMap)
	case namespaceName:
		v = a.namespace()
	case authorizerName:
		v = a.authorizer()
	case requestResourceName:
		v = a.requestResource()
	case variablesName:
		v = a.lazily()
	default:
		v, ok := a.input.Extra[name]
		return v, ok
	}
	a.values[name] = v
	return v, true
}

func (a *activation) replace(object map[string]any) {
	a.input.Object = object
	delete(a.values, objectName)
}

func (a *activation) valueOf(m map[string]any) ref.Val {
	if m == nil {
		return types.NullValue
	}
	return types.DefaultTypeAdapter.NativeToValue(m)
}

// lazily returns the variables of the policy, each evaluated when it is first used.
func (a *activation) lazily() *lazy.MapValue {
	m := lazy.NewMapValue(types.NewObjectType(variablesTypeName))
	for _, v := range a.scope.variables {
		m.Append(v.name, func(*lazy.MapValue) ref.Val { return a.variable(&v) })
	}
	return m
}

// namespace is the Namespace without what a server keeps from expressions.
func (a *activation) namespace() ref.Val {
	if a.input.Namespace == nil {
		return types.NullValue
	}
	var ns corev1.Namespace
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.input.Namespace, &ns); err != nil {
		return types.WrapErr(fmt.Errorf("read the Namespace of the object: %w", err))
	}
	return common.SchemalessTypedToVal(plugincel.CreateNamespaceObject(&ns))
}

func (a *activation) authorizer() ref.Val {
	if a.input.Access == nil {
		return a.noAccess()
	}
	return library.NewAuthorizerVal(userOf(a.input.User), access{a.evaluation})
}

func (a *activation) requestResource() ref.Val {
	if a.input.Access == nil {
		return a.noAccess()
	}
	if a.input.Request == nil {
		return types.NewErr("there is no request whose resource could be checked")
	}
	return library.NewResourceAuthorizerVal(userOf(a.input.User), access{a.evaluation}, requested{a.input.Request})
}

func (a *activation) noAccess() ref.Val {
	err := &UnsupportedError{Reason: "authorizer asks an API server what a user may do, and there is none: it needs a cluster"}
	a.evaluation.missing = err
	return types.WrapErr(err)
}

func (a *activation) variable(v *variable) ref.Val {
	out, err := a.evaluation.evaluate(v.expression)
	if err != nil {
		return types.WrapErr(fmt.Errorf("variable %q: %w", v.name, err))
	}
	return out
}
