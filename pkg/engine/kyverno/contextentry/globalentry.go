package contextentry

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/jmespath"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// Globals are GlobalContextEntries by name.
type Globals map[string]*global

// Add reads a GlobalContextEntry. What is wrong goes to the node's report, and is
// the error of every rule that refers to the entry.
func (g Globals) Add(name string, n policydecode.Node) { g[name] = decodeGlobal(n) }

// globalKind has no version: whichever the cluster prefers has the fields
// that are read here (v2alpha1, v2beta1 and v2 share them).
//
//nolint:gochecknoglobals // an immutable value
var globalKind = schema.GroupKind{Group: "kyverno.io", Kind: "GlobalContextEntry"}

// global is a compiled GlobalContextEntry.
type global struct {
	call        *call // nil for a list of objects
	resource    schema.GroupVersionResource
	namespace   string // of the objects; empty for all
	projections []projection
	broken      error // why it cannot be used
}

type projection struct {
	name string
	path *jmespath.Expression
}

func decodeGlobal(n policydecode.Node) *global {
	before := len(n.Report.Errs)
	root := n.Fields()
	root.Accept("apiVersion", "kind", "metadata", "status")
	spec := root.At("spec").Fields()
	g := &global{}
	switch call, list := spec.Has("apiCall"), spec.Has("kubernetesResource"); {
	case call == list:
		spec.Fail("needs either kubernetesResource or apiCall")
	case call:
		f := spec.At("apiCall").Fields()
		g.call = decodeCall(f)
		f.Accept("refreshInterval", "retryLimit")
		f.Done()
	default:
		g.decodeResource(spec.At("kubernetesResource").Fields())
	}
	for _, n := range spec.At("projections").List() {
		f := n.Fields()
		name, text := f.At("name").Text(), f.At("jmesPath")
		path, err := jmespath.Compile(text.Text())
		if err != nil {
			text.Fail("%w", err)
		}
		g.projections = append(g.projections, projection{name, path})
		f.Done()
	}
	spec.Done()
	root.Done()
	if errs := n.Report.Errs; len(errs) > before {
		g.broken = errs[before]
	}
	return g
}

func (g *global) decodeResource(f *policydecode.Fields) {
	g.resource = schema.GroupVersionResource{
		Group: f.At("group").Text(), Version: f.At("version").Required(), Resource: f.At("resource").Required(),
	}
	g.namespace = f.At("namespace").Text()
	f.Done()
}

// ask describes what it reads.
func (g *global) ask(what string) engine.Ask {
	if g.call != nil {
		return g.call.ask(what + ": ")
	}
	s := engine.Selection{Group: g.resource.Group, Kind: "*", Resource: g.resource.Resource, Namespace: g.namespace}
	return engine.Ask{Of: engine.AskObjects, What: what, Objects: s}
}

// read gets the data: the answer to the request, or the list of the objects.
func (g *global) read(from *Sources, in *jmespath.Interpreter) (any, error) {
	if g.call != nil {
		// An entry belongs to no rule, so that its request has no variables.
		r, err := g.call.render(variables.NewScope(in, from.World.Limits))
		if err != nil {
			return nil, err
		}
		return r.answer(from)
	}
	if from.World.Reader == nil || from.World.Mapper == nil {
		return nil, &jmespath.UnsupportedError{Field: "globalReference", Reason: "there is no cluster to list " + g.resource.Resource + " in"}
	}
	mapping, err := engine.MappingOf(from.World.Mapper, g.resource)
	if err != nil {
		return nil, err
	}
	list := []any{}
	limit.Wait(from.Context, func() {
		var object *unstructured.Unstructured
		for object, err = range from.World.Reader.List(from.Context, engine.Selection{
			Group: g.resource.Group, Version: g.resource.Version, Kind: mapping.GroupVersionKind.Kind, Namespace: g.namespace,
		}) {
			if err != nil {
				return
			}
			list = append(list, object.Object)
		}
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
