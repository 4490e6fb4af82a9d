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
func (f *Factory) namespace() string {
	ns, _, err := f.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "default" // manifests need no kubeconfig; a cluster reports the error itself
	}
	return ns
}

// scope follows kubectl get: the current namespace, that of -n, or all with -A.
// Objects without a namespace are left out only when -n asks for one. Manifests
// are all evaluated unless -n chooses among them.
func (f *Factory) scope(mapper meta.RESTMapper, args []string, request engine.Request) (engine.Scope, error) {
	scope := engine.Scope{ClusterScoped: !f.namespaceTyped() || f.Objects.AllNamespaces, Namespace: f.oneNamespace(), Request: request}
	var err error
	if scope.Labels, scope.Fields, err = f.Objects.Selectors(); err != nil {
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
func (f *Factory) checkNamespace(ctx context.Context, mapper meta.RESTMapper, scope engine.Scope) error {
	if f.Client == nil || scope.Namespace == "" || (len(scope.Only) > 0 && !slices.ContainsFunc(scope.Only, namespacedBy(mapper))) {
		return nil
	}
	_, err := f.Client.Get(ctx, engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: scope.Namespace})
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

func (f *Factory) namespaceTyped() bool {
	return f.Config.Namespace != nil && *f.Config.Namespace != ""
}

// oneNamespace returns the only namespace that the run reads, or "" for all.
func (f *Factory) oneNamespace() string {
	if f.Objects.AllNamespaces || (f.Objects.Offline() && !f.namespaceTyped()) {
		return ""
	}
	return f.namespace()
}

func (f *Factory) source(ctx context.Context, scope engine.Scope) engine.Source {
	scope.Ignored = f.resourceFilters(ctx).Match
	if f.snapshot != nil {
		return f.snapshot.Source(scope)
	}
	return f.Client.Source(scope, cluster.SourceOptions{Warn: f.Warn, Listed: f.progress.Listed})
}

// resourceFilters returns Kyverno's resource filters, which are read once: those of the cluster,
// or of the ConfigMap among the manifests. An error is reported only if Kyverno is installed.
func (f *Factory) resourceFilters(ctx context.Context) cluster.Filters {
	if f.filtersRead {
		return f.filters
	}
	f.filtersRead = true
	var err error
	if f.snapshot != nil {
		if f.filters, err = cluster.ResourceFilters(ctx, f.snapshot); err != nil {
			f.leave(fmt.Errorf("cannot read which objects Kyverno ignores: %w", err))
		}
		return f.filters
	}
	if f.filters, err = cluster.ResourceFilters(ctx, f.Client); err == nil {
		return f.filters
	}
	for _, kind := range rbac.KyvernoKinds() {
		if _, missing := f.Client.Mapper().RESTMapping(kind); missing == nil {
			f.leave(fmt.Errorf("cannot read which objects Kyverno ignores: %w", err))
			break
		}
	}
	return f.filters
}
