package factory

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/rbac"
)

// namespace is the one that -n names, else the current one of the kubeconfig.
func (w *Factory) namespace() string {
	ns, _, err := w.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "default" // manifests need no kubeconfig; a cluster fails on it by itself
	}
	return ns
}

// scope follows kubectl get: the current namespace, that of -n, or all with -A.
// Objects without a namespace are left out only when -n asks for one. Manifests
// are all evaluated unless -n chooses among them.
func (w *Factory) scope(mapper meta.RESTMapper, args []string, request engine.Request) (engine.Scope, error) {
	scope := engine.Scope{ClusterScoped: !w.namespaceTyped() || w.Objects.AllNamespaces, Namespace: w.oneNamespace(), Request: request}
	var err error
	if scope.Labels, scope.Fields, err = w.Objects.Selectors(); err != nil {
		return scope, err
	}
	scope.Only, err = Resolve(mapper, args)
	return scope, err
}

// NoNamespaceError tells that the namespace that a run is narrowed to does not exist.
type NoNamespaceError struct{ Namespace string }

// Error names the namespace.
func (e *NoNamespaceError) Error() string {
	return fmt.Sprintf("there is no namespace %q", e.Namespace)
}

// checkNamespace refuses to look at nothing in a namespace that is not there, which
// would pass for objects that are as they should be. A user who may not read it gets
// no verdict. Types without a namespace need none.
func (w *Factory) checkNamespace(ctx context.Context, mapper meta.RESTMapper, scope engine.Scope) error {
	if w.Client == nil || scope.Namespace == "" || (len(scope.Only) > 0 && !slices.ContainsFunc(scope.Only, namespacedBy(mapper))) {
		return nil
	}
	_, err := w.Client.Get(ctx, engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: scope.Namespace})
	switch {
	case apierrors.IsNotFound(err):
		return &NoNamespaceError{Namespace: scope.Namespace}
	case apierrors.IsForbidden(err):
		return nil
	}
	return err
}

// namespacedBy tells whether objects of what the user typed are in namespaces.
func namespacedBy(mapper meta.RESTMapper) func(engine.ObjectKey) bool {
	return func(key engine.ObjectKey) bool {
		mapping, err := mapper.RESTMapping(key.GroupKind)
		return err != nil || mapping.Scope.Name() == meta.RESTScopeNameNamespace
	}
}

func (w *Factory) namespaceTyped() bool {
	return w.Config.Namespace != nil && *w.Config.Namespace != ""
}

// oneNamespace is the namespace to which the run is narrowed, or none.
func (w *Factory) oneNamespace() string {
	if w.Objects.AllNamespaces || (w.Objects.Offline() && !w.namespaceTyped()) {
		return ""
	}
	return w.namespace()
}

func (w *Factory) source(ctx context.Context, scope engine.Scope) engine.Source {
	if w.snapshot != nil {
		return w.snapshot.Source(scope)
	}
	return w.Client.Source(scope, cluster.SourceOptions{Filters: w.resourceFilters(ctx), Warn: w.Warn, Listed: w.progress.Listed})
}

// resourceFilters are Kyverno's, read once. That they cannot be read is told where
// there is a Kyverno.
func (w *Factory) resourceFilters(ctx context.Context) cluster.Filters {
	if w.filtersRead {
		return w.filters
	}
	w.filtersRead = true
	var err error
	if w.filters, err = w.Client.ResourceFilters(ctx); err == nil {
		return w.filters
	}
	for _, kind := range rbac.KyvernoKinds() {
		if _, missing := w.Client.Mapper().RESTMapping(kind); missing == nil {
			w.leave(fmt.Errorf("cannot read which objects Kyverno leaves alone: %w", err))
			break
		}
	}
	return w.filters
}
