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

// noNamespaceError reports that the namespace of the run does not exist.
type noNamespaceError struct{ Namespace string }

// Error names the namespace.
func (e *noNamespaceError) Error() string {
	return fmt.Sprintf("there is no namespace %q", e.Namespace)
}

// checkNamespace returns an error for a namespace that does not exist: "nothing would change"
// would be misleading. It cannot check for a user who may not read it. Cluster-scoped types need
// no namespace.
func (w *Factory) checkNamespace(ctx context.Context, mapper meta.RESTMapper, scope engine.Scope) error {
	if w.Client == nil || scope.Namespace == "" || (len(scope.Only) > 0 && !slices.ContainsFunc(scope.Only, namespacedBy(mapper))) {
		return nil
	}
	_, err := w.Client.Get(ctx, engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: scope.Namespace})
	switch {
	case apierrors.IsNotFound(err):
		return &noNamespaceError{Namespace: scope.Namespace}
	case apierrors.IsForbidden(err):
		return nil
	}
	return err
}

// namespacedBy returns a function that reports whether a type is namespaced.
func namespacedBy(mapper meta.RESTMapper) func(engine.ObjectKey) bool {
	return func(key engine.ObjectKey) bool {
		mapping, err := mapper.RESTMapping(key.GroupKind)
		return err != nil || mapping.Scope.Name() == meta.RESTScopeNameNamespace
	}
}

func (w *Factory) namespaceTyped() bool {
	return w.Config.Namespace != nil && *w.Config.Namespace != ""
}

// oneNamespace returns the only namespace that the run reads, or "" for all.
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

// resourceFilters returns Kyverno's resource filters, which are read once. An error is reported
// only if Kyverno is installed.
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
			w.leave(fmt.Errorf("cannot read which objects Kyverno ignores: %w", err))
			break
		}
	}
	return w.filters
}
