package factory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/selector"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/permission"
)

// namespace returns the namespace of -n, or the current one of the kubeconfig.
func (f *Factory) namespace() string {
	ns, _, err := f.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "default" // manifests need no kubeconfig; a cluster reports the error
	}
	return ns
}

// scope follows kubectl get: the current namespace, that of -n, those of --namespaces, or all with -A.
// Objects without a namespace are left out only with -n or --namespaces. All manifests are evaluated unless
// -n chooses among them.
func (f *Factory) scope(mapper meta.RESTMapper, args []string, request engine.Request) (engine.Scope, error) {
	choice := f.choice(args, request)
	return scopeOf(mapper, &choice, request)
}

// Part returns the scope that chooses a part of a plan: of all namespaces, unless some are typed.
func (f *Factory) Part(args []string) (*engine.Scope, error) {
	scope, err := f.scope(f.Client.Mapper(), args, engine.Request{})
	if !f.NamespacesTyped() {
		scope.Namespaces = nil
	}
	return &scope, err
}

// checkNamespaces returns an error for a missing namespace, in which "nothing would change" would be
// misleading. It cannot check for a user who may not read namespaces. Cluster-scoped types need no
// namespace.
func (f *Factory) checkNamespaces(ctx context.Context, mapper meta.RESTMapper, scope engine.Scope) error {
	if f.Client == nil ||
		(len(scope.Only) > 0 && !slices.ContainsFunc(scope.Only, func(key engine.ObjectKey) bool {
			mapping, err := mapper.RESTMapping(key.GroupKind)
			return err != nil || mapping.Scope.Name() == meta.RESTScopeNameNamespace
		})) {
		return nil
	}
	for _, name := range scope.Namespaces {
		var err error
		if selector.HasWildcard(name) {
			err = f.someNamespace(ctx, name)
		} else {
			_, err = f.Client.Namespace(ctx, name)
		}
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("there is no namespace %q", name)
		case err != nil && !apierrors.IsForbidden(err):
			return err
		}
	}
	return nil
}

// someNamespace returns a NotFound error unless a namespace matches a pattern.
func (f *Factory) someNamespace(ctx context.Context, pattern string) error {
	for u, err := range f.Client.List(ctx, engine.Selection{Version: "v1", Kind: "Namespace"}) {
		if err != nil || selector.MatchWildcard(pattern, u.GetName()) {
			return err
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, pattern)
}

// Missing returns an error if the user named objects and none of them exists: if no policy matches their
// kinds, the evaluation does not look for them. It does not check names in all namespaces.
func (f *Factory) Missing(ctx context.Context, o *evaluate.Options) error {
	var errs []error
	for _, key := range o.Scope.Only {
		mapping, err := o.World.Mapper.RESTMapping(key.GroupKind)
		if err != nil || key.Name == "" {
			return nil
		}
		key.Version = mapping.GroupVersionKind.Version
		namespaces := []string{""}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if namespaces = o.Scope.Listed(); len(namespaces) == 0 {
				return nil
			}
		}
		for _, key.Namespace = range namespaces {
			if _, err = o.World.ReadsExisting().Get(ctx, key); !apierrors.IsNotFound(err) {
				return nil
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// NamespacesTyped reports whether the user typed the namespaces of the run.
func (f *Factory) NamespacesTyped() bool {
	return len(f.Objects.Namespaces) > 0 || f.Config.Namespace != nil && *f.Config.Namespace != ""
}

// Namespaces returns the namespaces of the run, sorted; nil for all.
func (f *Factory) Namespaces() []string {
	switch {
	case f.Objects.AllNamespaces, f.Objects.Offline() && !f.NamespacesTyped():
		return nil
	case len(f.Objects.Namespaces) > 0:
		return slices.Compact(slices.Sorted(slices.Values(f.Objects.Namespaces)))
	}
	return []string{f.namespace()}
}

// choose makes a run change only the objects of a scope. Triggers are read wherever the policies say; if the
// user may not, in the namespaces of the scope.
func (f *Factory) choose(o *evaluate.Options, scope engine.Scope) {
	if f.Client != nil && f.Objects.AllNamespaces {
		o.Narrower = func(ctx context.Context, lacking []permission.Need) string {
			return f.narrower(ctx, o.World, lacking)
		}
	}
	o.Scope, o.Objects = &scope, f.source(scope, nil)
	o.Triggers = o.Objects
	if !scope.Shard.Whole() && o.World.Existing == nil && f.Client != nil {
		o.World.Existing = cluster.RunReader{Client: f.Client, Shard: scope.Shard}
	}
	if !scope.Whole() {
		o.Triggers = f.source(engine.Scope{ClusterScoped: true, Request: scope.Request}, scope.Listed())
	}
	if f.overlay != nil {
		o.Objects, o.Triggers = f.overlay.Source(o.Objects), f.overlay.Source(o.Triggers)
	}
	policies := slices.DeleteFunc(slices.Clone(o.Documents), func(d engine.Document) bool {
		return isInstalled(d) || engine.RoleOf(d.Key.GroupKind, o.Dialects) != engine.Policy
	})
	o.Triggers = installing{o.Triggers, policies, o.World, scope.Request, snapshot.Options{
		Namespace: f.namespace(), Cluster: o.World.Mapper,
	}}
}

// installing also streams the policies of files that rules name as triggers, unless they are installed: an
// installed policy is an object as well (getTriggers in Kyverno's pkg/policy/policy_controller.go).
type installing struct {
	engine.Source
	policies []engine.Document
	world    *engine.World
	request  engine.Request
	options  snapshot.Options
}

// Pages implements engine.Source.
func (s installing) Pages(ctx context.Context, selections []engine.Selection) iter.Seq2[engine.Page, error] {
	return func(yield func(engine.Page, error) bool) {
		for page, err := range s.Source.Pages(ctx, selections) {
			if !yield(page, err) {
				return
			}
		}
		var policies snapshot.Loader
		named := slices.DeleteFunc(slices.Clone(selections), func(s engine.Selection) bool {
			return s.Kind == "*" && (s.Resource == "" || s.Resource == "*")
		})
		for _, d := range s.policies {
			if !slices.ContainsFunc(named, func(s engine.Selection) bool { return s.MatchesName(d.Key) }) {
				continue
			}
			if _, err := s.world.ReadsExisting().Get(ctx, d.Key); apierrors.IsNotFound(err) ||
				meta.IsNoMatchError(err) {
				policies.Add(d)
			}
		}
		found, err := policies.Load(s.options)
		if err != nil {
			yield(nil, err)
			return
		}
		for page, err := range found.Source(engine.Scope{ClusterScoped: true, Request: s.request}).Pages(ctx,
			named) {
			if !yield(page, err) {
				return
			}
		}
	}
}

// source streams the objects of a scope; see cluster.SourceOptions for the fallback.
func (f *Factory) source(scope engine.Scope, fallback []string) engine.Source {
	if f.snapshot != nil {
		return f.snapshot.Source(scope)
	}
	return f.Client.Source(scope,
		cluster.SourceOptions{Warn: f.Warn, Listed: f.progress.Listed, Fallback: fallback})
}

// filtered applies the resourceFilters in the ConfigMap of a Kyverno installed in its usual namespace, if
// any policy is Kyverno's, except to objects that the user named. An error is reported only if Kyverno is
// installed.
func (f *Factory) filtered(ctx context.Context, o *evaluate.Options, scope engine.Scope) {
	if !slices.ContainsFunc(o.Dialects, func(d engine.Dialect) bool {
		return dialects.OfKyverno(d) && len(o.Of(d)) > 0
	}) {
		return
	}
	filters, err := readFilters(ctx, o.World.Reader)
	if err != nil && f.Client != nil &&
		slices.ContainsFunc(permission.KyvernoKinds(), func(kind schema.GroupKind) bool {
			_, err := f.Client.Mapper().RESTMapping(kind)
			return err == nil
		}) {
		f.leave(fmt.Errorf("cannot read which objects Kyverno ignores: %w", err))
	}
	if len(filters) == 0 {
		return
	}
	o.World.Filtered = func(k engine.ObjectKey) bool {
		named := slices.ContainsFunc(scope.Only, func(typed engine.ObjectKey) bool {
			return typed.GroupKind == k.GroupKind && typed.Name == k.Name
		})
		return !named && filters.Match(k.GroupVersionKind(), k.Subresource, k.Namespace, k.Name)
	}
}

// readFilters returns the filters of the ConfigMap; nil if it does not exist.
func readFilters(ctx context.Context, from engine.Reader) (selector.ResourceFilters, error) {
	u, err := from.Get(ctx, engine.ObjectKey{
		GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "kyverno", Name: "kyverno",
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, _, err := unstructured.NestedString(u.Object, "data", "resourceFilters")
	return selector.ParseResourceFilters(text), err
}

// maxAsked is the maximum number of access reviews that look for namespaces in which a user may list
// objects.
const maxAsked = 1000

// narrower returns a hint on the known namespaces in which the user may list what was refused in all
// namespaces.
func (f *Factory) narrower(ctx context.Context, w *engine.World, lacking []permission.Need) string {
	var refused []schema.GroupResource
	served, _ := f.Client.Served(ctx) // without it, nothing could have been refused
	for _, m := range served {
		r := m.Resource.GroupResource()
		if m.Scope.Name() == meta.RESTScopeNameNamespace &&
			slices.ContainsFunc(lacking, func(n permission.Need) bool {
				return n.Verb == "list" && n.Namespace == "" && n.Group == r.Group && n.Resource == r.Resource
			}) {
			refused = append(refused, r)
		}
	}
	if len(refused) == 0 {
		return ""
	}
	known := f.knownNamespaces(ctx)
	found := slices.DeleteFunc(known[:min(len(known), maxAsked/len(refused))], func(namespace string) bool {
		return slices.ContainsFunc(refused, func(r schema.GroupResource) bool {
			decision, err := w.Access.Authorize(ctx,
				engine.AccessRequest{Verb: "list", Group: r.Group, Resource: r.Resource, Namespace: namespace})
			return err != nil || !decision.Allowed
		})
	})
	if len(found) == 0 {
		return "hint: --namespaces a,b,c in place of -A reads nothing but the namespaces that you name\n"
	}
	return fmt.Sprintf("hint: you may list these objects in the following of the namespaces that are known: use --namespaces %s in place of -A\n", strings.Join(found, ","))
}

// knownNamespaces returns the namespaces that the user may list, or else those that the kubeconfig names for
// the cluster.
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
