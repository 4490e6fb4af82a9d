package factory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
)

// maxAsked is how many access reviews look for the namespaces in which a user may list objects.
const maxAsked = 1000

// narrower says in which namespaces the user may list what was refused in all of them, as far as their names are known.
func (f *Factory) narrower(ctx context.Context, w *engine.World, lacking []rbac.Need) string {
	var refused []schema.GroupResource
	for _, n := range lacking {
		r := schema.GroupResource{Group: n.Group, Resource: n.Resource}
		if n.Verb == "list" && n.Namespace == "" && f.namespaced(r) && !slices.Contains(refused, r) {
			refused = append(refused, r)
		}
	}
	if len(refused) == 0 {
		return ""
	}
	var found []string
	asked := 0
	for _, namespace := range f.knownNamespaces(ctx) {
		if !slices.ContainsFunc(refused, func(r schema.GroupResource) bool {
			asked++
			decision, err := w.Access.Authorize(ctx, engine.AccessRequest{Verb: "list", Group: r.Group, Resource: r.Resource, Namespace: namespace})
			return err != nil || !decision.Allowed
		}) {
			found = append(found, namespace)
		}
		if asked >= maxAsked {
			break
		}
	}
	if len(found) == 0 {
		return "hint: --namespaces a,b,c in place of -A reads nothing but the namespaces that you name\n"
	}
	return fmt.Sprintf("hint: you may list these objects in the following of the namespaces that are known: use --namespaces %s in place of -A\n", strings.Join(found, ","))
}

// namespaced reports whether the objects of a resource are in namespaces.
func (f *Factory) namespaced(r schema.GroupResource) bool {
	kind, err := f.Client.Mapper().KindFor(r.WithVersion(""))
	if err != nil {
		return false
	}
	mapping, err := f.Client.Mapper().RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// knownNamespaces returns those that the user may list, else those that the kubeconfig names for the cluster.
func (f *Factory) knownNamespaces(ctx context.Context) []string {
	var out []string
	for u, err := range f.Client.List(ctx, engine.Selection{Version: "v1", Kind: "Namespace"}) {
		if err != nil {
			break
		}
		out = append(out, u.GetName())
	}
	if len(out) == 0 {
		out = append(out, f.namespace(), "default")
		if raw, err := f.Config.ToRawKubeConfigLoader().RawConfig(); err == nil {
			here := raw.Contexts[f.Client.Info().Context]
			for _, c := range raw.Contexts {
				if here != nil && c.Cluster == here.Cluster && len(validation.IsDNS1123Label(c.Namespace)) == 0 {
					out = append(out, c.Namespace)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
