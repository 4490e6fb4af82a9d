package factory

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
)

// CheckRun makes sure that a recorded run may be taken up: on this cluster, by
// this version, at its age. A maxAge of 0 stands for any.
func (w *Factory) CheckRun(ctx context.Context, run *plan.Run, maxAge time.Duration) error {
	here, err := w.Here(ctx)
	if err != nil {
		return err
	}
	return run.Check(plan.Here{Cluster: here, Version: version.Release(), Now: time.Now(), MaxAge: maxAge})
}

// Repeat joins what an evaluation needs to come out as the recorded run did: its
// policies, its choice of objects, its clock and its seed. What is installed in
// the cluster is read again, and the error is a *plan.OtherPoliciesError where it
// is not what it was. What a policy may do beyond the cluster has to be allowed
// again: a file grants nothing.
func (w *Factory) Repeat(ctx context.Context, run *plan.Run) (*preview.Options, error) {
	if err := w.checkGrants(&run.Choice); err != nil {
		return nil, err
	}
	o := &preview.Options{
		Policies: preview.Policies{
			Dialects: dialects.All(),
			Rules:    engine.RuleFilter{Only: run.Choice.Only, Skip: run.Choice.Skip},
		},
		Annotate: run.Choice.Annotate, ErrOut: w.Streams.ErrOut,
		Request: engine.Request{
			Operation: run.Choice.Operation,
			User:      engine.UserInfo{Username: run.Choice.User, Groups: run.Choice.Groups},
		},
		World: &engine.World{
			Now: run.Created, Seed: run.Seed, Limits: engine.DefaultLimits(), Memo: &engine.Memo{},
			Reader: w.Client, Raw: w.Client, Access: cluster.NewAuthorizer(w.Client), Mapper: w.Client.Mapper(),
		},
	}
	grant(&w.Context, o.World)
	var err error
	if o.Documents, err = w.recordedDocuments(ctx, run, o); err != nil {
		return nil, err
	}
	scope, err := recordedScope(o, &run.Choice)
	if err != nil {
		return nil, err
	}
	o.Objects = w.source(ctx, scope)
	w.unheeded.count(o)
	w.learn(o)
	return o, nil
}

func (w *Factory) checkGrants(c *plan.Choice) error {
	for _, g := range []struct {
		flag       string
		was, typed bool
	}{
		{"--allow-http", c.AllowHTTP, w.Context.AllowHTTP},
		{"--allow-registry", c.AllowRegistry, w.Context.AllowRegistry},
	} {
		if g.was != g.typed {
			return fmt.Errorf("%s has to be typed if and only if it was typed when the changes were planned (it was: %t)", g.flag, g.was)
		}
	}
	return nil
}

func (w *Factory) recordedDocuments(ctx context.Context, run *plan.Run, o *preview.Options) ([]engine.Document, error) {
	if run.Choice.FromCluster {
		installed, unread := w.Client.PolicyDocuments(ctx, besidePolicies(o.Dialects))
		if len(unread) > 0 {
			return nil, &input.ClusterError{Errs: unread}
		}
		return run.Restore(installed)
	}
	// Which inputs the cluster's engines go by depends on the dialects in use.
	o.Documents = run.Recorded()
	return run.Restore(w.installedInputs(ctx, o))
}

func recordedScope(o *preview.Options, c *plan.Choice) (engine.Scope, error) {
	scope := engine.Scope{Namespace: c.Namespace, ClusterScoped: c.ClusterScoped, Request: o.Request}
	var err error
	if c.Selector != "" {
		if scope.Labels, err = labels.Parse(c.Selector); err != nil {
			return scope, fmt.Errorf("selector of the recorded run: %w", err)
		}
	}
	if c.FieldSelector != "" {
		if scope.Fields, err = fields.ParseSelector(c.FieldSelector); err != nil {
			return scope, fmt.Errorf("field selector of the recorded run: %w", err)
		}
	}
	scope.Only, err = Resolve(o.World.Mapper, c.Types)
	return scope, err
}

// isInstalled tells whether a document comes from the cluster.
func isInstalled(d engine.Document) bool { return d.Origin == cluster.Origin }
