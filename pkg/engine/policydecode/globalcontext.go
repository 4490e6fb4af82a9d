package policydecode

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

// GlobalContextKind is the kind of data that Kyverno keeps for the policies of both its languages. It has no
// version: v2alpha1, v2beta1 and v2 share the fields that are read here.
//
//nolint:gochecknoglobals // an immutable value
var GlobalContextKind = schema.GroupKind{Group: "kyverno.io", Kind: "GlobalContextEntry"}

// GlobalContext is a GlobalContextEntry, with its request and its expressions as parsed by a language.
type GlobalContext[Call, Expression any] struct {
	Call        *Call // nil for a list of objects
	Projections map[string]Expression
	Broken      error // why it is unusable

	resource  schema.GroupVersionResource
	namespace string // of the objects; empty for all
}

// DecodeGlobalContext reads an entry. Errors also go to the node's report.
func DecodeGlobalContext[Call, Expression any](
	n Node, call func(*Fields) *Call, expression func(Node) Expression,
) *GlobalContext[Call, Expression] {
	before := len(n.Report.Errs)
	root := n.Fields()
	spec := root.At("spec").Fields()
	g := &GlobalContext[Call, Expression]{Projections: map[string]Expression{}}
	switch called, listed := spec.Has("apiCall"), spec.Has("kubernetesResource"); {
	case called == listed:
		spec.Fail("needs either kubernetesResource or apiCall")
	case called:
		f := spec.At("apiCall").Fields()
		g.Call = call(f)
		f.Accept("refreshInterval", "retryLimit")
		f.Done()
	default:
		f := spec.At("kubernetesResource").Fields()
		g.resource = schema.GroupVersionResource{
			Group: f.At("group").Text(), Version: f.At("version").Required(), Resource: f.At("resource").Required(),
		}
		g.namespace = f.At("namespace").Text()
		f.Done()
	}
	for _, n := range spec.At("projections").List() {
		f := n.Fields()
		g.Projections[f.At("name").Text()] = expression(f.At("jmesPath"))
		f.Done()
	}
	spec.Done()
	root.DoneObject()
	if errs := n.Report.Errs; len(errs) > before {
		g.Broken = errs[before]
	}
	return g
}

// Lists selects the objects of an entry without a request, as far as known without a server.
func (g *GlobalContext[Call, Expression]) Lists() engine.Selection {
	return engine.Selection{
		Group: g.resource.Group, Kind: "*", Resource: g.resource.Resource, Namespace: g.namespace,
	}
}

// Selection selects the objects that the entry lists.
func (g *GlobalContext[Call, Expression]) Selection(mapper meta.RESTMapper) (engine.Selection, error) {
	mapping, err := engine.MappingOf(mapper, g.resource)
	if err != nil {
		return engine.Selection{}, err
	}
	return engine.Selection{
		Group: g.resource.Group, Version: g.resource.Version,
		Kind: mapping.GroupVersionKind.Kind, Namespace: g.namespace,
	}, nil
}
