package factory

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
)

// Recorded describes the run that is about to be evaluated, so that it can be repeated.
func (f *Factory) Recorded(ctx context.Context, args []string, o *preview.Options) (plan.Run, error) {
	here, err := f.Here(ctx)
	if err != nil {
		return plan.Run{}, err
	}
	choice, err := f.choice(args, o)
	if err != nil {
		return plan.Run{}, err
	}
	run := plan.Run{Cluster: here, Version: version.Release(), Created: o.World.Now, Seed: o.World.Seed, Choice: choice}
	run.Documents, run.Digest, err = plan.DocumentsOf(o.InUse(), isInstalled)
	return run, err
}

// Here identifies the cluster: by the UID of the Namespace kube-system, or by the server's
// address alone for users who may not read it.
func (f *Factory) Here(ctx context.Context) (plan.Cluster, error) {
	info := f.Client.Info()
	out := plan.Cluster{Server: info.Server, Context: info.Context, User: info.User}
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1", Name: metav1.NamespaceSystem}
	system, err := cluster.RetryingClient{Client: f.Client}.Get(ctx, key)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
	case err != nil:
		return out, fmt.Errorf("identifying the cluster: %w", err)
	default:
		out.UID = system.GetUID()
	}
	return out, nil
}

// choice returns what the user chose, with what follows from the kubeconfig.
func (f *Factory) choice(args []string, o *preview.Options) (plan.Choice, error) {
	scope, err := f.scope(o.World.Mapper, args, o.Request)
	if err != nil {
		return plan.Choice{}, err
	}
	return plan.Choice{
		Types: args, Namespace: strings.Join(scope.Namespaces, ","), ClusterScoped: scope.ClusterScoped,
		Selector: f.Objects.Selector, FieldSelector: f.Objects.FieldSelector,
		Percent: scope.Percent, PercentSeed: scope.Seed, Shard: scope.Shard,
		Operation: o.Request.Operation, User: o.Request.User.Username, Groups: o.Request.User.Groups,
		Only: o.Rules.Only, Skip: o.Rules.Skip, Annotate: o.Annotate, AssumeBinding: o.AssumeBinding, FromCluster: f.Policies.FromCluster,
		AllowHTTP: f.Context.AllowHTTP, AllowRegistry: f.Context.AllowRegistry,
	}, nil
}
