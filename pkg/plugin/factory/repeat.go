package factory

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/dialects"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/version"
)

// CheckRun returns an error if a recorded run cannot be continued: on another cluster, by
// another version, or when it is older than maxAge. A maxAge of 0 allows any age.
func (f *Factory) CheckRun(ctx context.Context, run *plan.Run, maxAge time.Duration) error {
	here, err := f.Here(ctx)
	if err != nil {
		return err
	}
	return run.Check(plan.Here{Cluster: here, Version: version.Release(), Now: time.Now(), MaxAge: maxAge})
}

// Repeat returns the options with which an evaluation gives the same results as the recorded
// run: its policies, its choice of objects, its clock and its seed. Installed policies are read
// again; the error is a *plan.OtherPoliciesError if they have changed. What policies may access
// outside of the cluster has to be allowed again: a file cannot grant it.
func (f *Factory) Repeat(ctx context.Context, run *plan.Run) (*preview.Options, error) {
	if err := f.checkGrants(&run.Choice); err != nil {
		return nil, err
	}
	o := &preview.Options{
		Policies: preview.Policies{Dialects: dialects.All()},
		Options: evaluation.Options{Request: engine.Request{
			Operation: run.Choice.Operation,
			User:      engine.UserInfo{Username: run.Choice.User, Groups: run.Choice.Groups},
		}},
		ErrOut: f.Streams.ErrOut,
		World: &engine.World{
			Now: run.Created, Seed: run.Seed, Limits: engine.DefaultLimits(), Memo: &engine.Memo{},
		},
	}
	o.Rules, o.Annotate = engine.RuleFilter{Only: run.Choice.Only, Skip: run.Choice.Skip}, run.Choice.Annotate
	o.AssumeBinding, o.EngineView = run.Choice.AssumeBinding, f.EngineView
	grant(&f.Context, o.World)
	var err error
	if o.Documents, err = f.recordedDocuments(ctx, run, o); err != nil {
		return nil, err
	}
	if err := f.openCluster(ctx, o); err != nil {
		return nil, err
	}
	scope, err := recordedScope(o, &run.Choice)
	if err != nil {
		return nil, err
	}
	f.filtered(ctx, o, scope)
	f.choose(o, scope)
	o.Unread = f.unread
	return o, nil
}

func (f *Factory) checkGrants(c *plan.Choice) error {
	for _, g := range []struct {
		flag       string
		was, typed bool
	}{
		{"--allow-http", c.AllowHTTP, f.Context.AllowHTTP},
		{"--allow-registry", c.AllowRegistry, f.Context.AllowRegistry},
	} {
		if g.was != g.typed {
			return fmt.Errorf("%s must be the same as when the changes were planned: %t", g.flag, g.was)
		}
	}
	return nil
}

func (f *Factory) recordedDocuments(ctx context.Context, run *plan.Run, o *preview.Options) ([]engine.Document, error) {
	if run.Choice.FromCluster {
		installed, unread := f.Client.PolicyDocuments(ctx, besidePolicies(o.Dialects))
		if len(unread) > 0 {
			return nil, &input.ClusterError{Errs: unread}
		}
		return run.Restore(installed)
	}
	// Which inputs the cluster's engines use depends on the dialects in use.
	o.Documents = run.Recorded()
	return run.Restore(f.installedInputs(ctx, o))
}

func recordedScope(o *preview.Options, c *plan.Choice) (engine.Scope, error) {
	scope := engine.Scope{
		ClusterScoped: c.ClusterScoped, Percent: c.Percent, Seed: c.PercentSeed, Shard: c.Shard, Request: o.Request,
	}
	if c.Namespace != "" {
		scope.Namespaces = strings.Split(c.Namespace, ",")
	}
	chosen := flags.Objects{Selector: c.Selector, FieldSelector: c.FieldSelector}
	var err error
	if scope.Labels, scope.Fields, err = chosen.Selectors(); err != nil {
		return scope, err
	}
	scope.Only, err = Resolve(o.World.Mapper, c.Types)
	return scope, err
}

// isInstalled reports whether a document comes from the cluster.
func isInstalled(d engine.Document) bool { return d.Origin == cluster.Origin }
