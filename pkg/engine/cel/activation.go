package cel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/lazy"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// Input is the input of expressions, in which a nil object is null.
type Input struct {
	Object, OldObject map[string]any
	// Request is the request of authorizer, whose world answers it; nil if the language has no authorizer.
	Request *Candidate
	// RequestMap is the value of request.
	RequestMap map[string]any
	// Namespace is the object's Namespace; it may be nil.
	Namespace map[string]any
	Params    map[string]any
	// ReplaceAtomic lets apply configurations replace atomic lists, maps and structs, like server-side apply.
	// Otherwise they fail with ErrAtomic, as on an API server, since omitted fields of such values would be
	// lost.
	ReplaceAtomic bool
	// Explain adds operand values to false conditions.
	Explain bool
	// Extra are the values of a language's own variables.
	Extra map[string]any
}

func valueOf(m map[string]any) any {
	if m == nil {
		return types.NullValue
	}
	return m
}

// lazily returns the policy's variables, each evaluated on first use.
func (e *Evaluation) lazily() ref.Val {
	m := lazy.NewMapValue(types.NewObjectType(variablesTypeName))
	for _, v := range e.scope.variables {
		m.Append(v.Name, func(*lazy.MapValue) ref.Val {
			out, err := e.evaluate(v)
			if err != nil {
				return types.WrapErr(fmt.Errorf("variable %q: %w", v.Name, err))
			}
			return out
		})
	}
	return m
}

// namespace returns the Namespace without fields that a server hides from expressions.
func (e *Evaluation) namespace() ref.Val {
	if e.input.Namespace == nil {
		return types.NullValue
	}
	var ns corev1.Namespace
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(e.input.Namespace, &ns); err != nil {
		return types.WrapErr(fmt.Errorf("read the Namespace of the object: %w", err))
	}
	return common.SchemalessTypedToVal(plugincel.CreateNamespaceObject(&ns))
}

// authorizer returns the value of authorizer, or of authorizer.requestResource.
func (e *Evaluation) authorizer(ofRequest bool) ref.Val {
	r := e.input.Request
	if r.world.Access == nil {
		e.ended = &engine.UnsupportedError{Err: errors.New("authorizer asks an API server what a user may do, and there is none: it needs a cluster")}
		return types.WrapErr(e.ended)
	}
	user := &user.DefaultInfo{Name: r.Target.Request.User.Username, Groups: r.Target.Request.User.Groups}
	if ofRequest {
		return library.NewResourceAuthorizerVal(user, access{e}, r.attributes())
	}
	return library.NewAuthorizerVal(user, access{e})
}

// access passes the requests of Kubernetes' authorizer library to an evaluation's Authorizer.
type access struct{ *Evaluation }

// Authorize asks the Authorizer; the library passes no context of its own. An error in the server's decision
// is part of the expression's result. Without a decision the whole evaluation fails, since an expression
// would read it as a denial.
func (a access) Authorize(
	_ context.Context, attributes authorizer.Attributes,
) (authorizer.Decision, string, error) {
	r, err := accessRequest(attributes)
	if err != nil {
		return authorizer.DecisionNoOpinion, "", err
	}
	d, err := a.input.Request.world.Access.Authorize(a.ctx, r)
	if err != nil {
		a.ended = &engine.UnsupportedError{Err: err}
		return authorizer.DecisionNoOpinion, "", err
	}
	if d.Error != "" {
		err = errors.New(d.Error)
	}
	if d.Allowed {
		return authorizer.DecisionAllow, d.Reason, err
	}
	return authorizer.DecisionNoOpinion, d.Reason, err
}

func accessRequest(a authorizer.Attributes) (engine.AccessRequest, error) {
	r := engine.AccessRequest{
		User: engine.UserInfo{Username: a.GetUser().GetName(), Groups: a.GetUser().GetGroups()},
		Verb: a.GetVerb(), Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		Namespace: a.GetNamespace(), Name: a.GetName(), Path: a.GetPath(),
	}
	onFields, err := a.GetFieldSelector()
	if err != nil {
		return r, err
	}
	onLabels, err := a.GetLabelSelector()
	var all []string
	for _, r := range onFields {
		all = append(all, r.Field+string(r.Operator)+fields.EscapeValue(r.Value))
	}
	r.FieldSelector, r.LabelSelector = strings.Join(all, ","), labels.NewSelector().Add(onLabels...).String()
	return r, err
}
