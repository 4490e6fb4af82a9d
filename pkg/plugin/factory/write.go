package factory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/evaluate"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// Executor returns an executor that verifies and writes changes.
func (f *Factory) Executor(with *flags.Write, report func(*write.Result) error) *write.Executor {
	process.SaveMemory()
	prompt := write.NewPrompt(f.Streams.In, f.Streams.ErrOut, f.Client.Info())
	prompt.Yes, prompt.MaxChanges, prompt.Meter = with.Yes || with.Rehearses(), with.MaxChanges, f.progress
	x := &write.Executor{
		Queue: write.Queue{Report: report}, Verifier: *f.Verifier(with), Prompt: prompt, Pace: with.WritePace(),
		Interrupts: f.Interrupts,
	}
	x.Writer.Confirm, x.Writer.Slots = prompt.ConfirmLoss, make(chan struct{}, with.Concurrency)
	return x
}

// Verifier returns what verifies changes.
func (f *Factory) Verifier(with *flags.Write) *write.Verifier {
	patience := &cluster.Patience{Waiting: func(cause string) { f.progress.WaitingFor("the server: " + cause) }}
	return &write.Verifier{
		Writer: &write.Writer{
			Server: f.Client.Retrying(patience), Patience: patience,
			Manager: with.FieldManager,
			Allowed: with.Allowed, DryRun: write.DryRun(with.DryRun), HasStatus: f.Client.HasStatus,
		},
		Access: cluster.NewAuthorizer(f.Client), Mapper: f.Client.Mapper(), Concurrency: with.Concurrency,
		ErrOut: f.Streams.ErrOut, Meter: f.progress,
	}
}

// DriftPrinter shows the planned diff and the current one on errOut: standard output is for the results,
// whose line says who changed what.
func DriftPrinter(options output.Options, errOut io.Writer) func(*plan.Drift) error {
	options.Out, options.Color, options.Query, options.Hint = errOut, false, "", nil
	options.GroupBy = output.ByObject
	show := func(title string, c *engine.Change) error {
		if _, err := fmt.Fprintf(errOut, "%s\n", title); err != nil {
			return err
		}
		if !c.Changed() {
			_, err := fmt.Fprintln(errOut, "    nothing to change")
			return err
		}
		printer, err := formats.New(formats.Diff, options)
		if err != nil {
			return err
		}
		return errors.Join(printer.Print(output.Evaluated{Change: c}), output.Flush(printer))
	}
	return func(d *plan.Drift) error {
		err := show(fmt.Sprintf("%s: this was planned:", d.Object), &d.Planned)
		return errors.Join(err, show(fmt.Sprintf("%s: this would be done now:", d.Object), &d.Now))
	}
}

// Recorded describes the run that is about to be evaluated, so that it can be repeated.
func (f *Factory) Recorded(ctx context.Context, args []string, o *evaluate.Options) (plan.Run, error) {
	here, err := f.Here(ctx)
	if err != nil {
		return plan.Run{}, err
	}
	run := plan.Run{
		Cluster: here, Version: process.Release(), Created: o.World.Now, Seed: o.World.Seed,
		Choice: f.choice(args, o.Request),
	}
	run.Documents, run.Digest, err = plan.DocumentsOf(o.InUse(), isInstalled)
	return run, err
}

// Here identifies the cluster by the UID of the Namespace kube-system, or by the server's address for users
// who may not read it.
func (f *Factory) Here(ctx context.Context) (plan.Cluster, error) {
	info := f.Client.Info()
	out := plan.Cluster{Server: info.Server, Context: info.Context, User: info.User}
	key := engine.ObjectKey{
		GroupKind: schema.GroupKind{Kind: "Namespace"}, Version: "v1",
		Name: metav1.NamespaceSystem,
	}
	system, err := f.Client.Retrying(&cluster.Patience{}).Get(ctx, key)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
	case err != nil:
		return out, fmt.Errorf("identifying the cluster: %w", err)
	default:
		out.UID = system.GetUID()
	}
	return out, nil
}

// choice returns the choices of the user and the kubeconfig.
func (f *Factory) choice(args []string, r engine.Request) plan.Choice {
	return plan.Choice{
		Types: args, Namespace: strings.Join(f.Namespaces(), ","), ClusterScoped: !f.NamespacesTyped() ||
			f.Objects.AllNamespaces,
		Exclude: f.Objects.Exclude, ExcludeNamespaces: f.Objects.ExcludeNamespaces,
		Selector: f.Objects.Selector, FieldSelector: f.Objects.FieldSelector,
		Percent: f.Canary.Percent, PercentSeed: f.Canary.PercentSeed, Shard: f.Canary.Shard,
		Operation: r.Operation, User: r.User.Username, Groups: r.User.Groups,
		Only: f.Policies.Rules.Only, Skip: f.Policies.Rules.Skip, Annotate: f.Annotate,
		AssumeBinding: f.Policies.AssumeBinding, FromCluster: f.Policies.FromCluster,
		AllowHTTP: f.Context.AllowHTTP, AllowRegistry: f.Context.AllowRegistry,
	}
}

// CheckRun returns an error if a recorded run cannot be continued: on another cluster, by another version,
// or if it is older than maxAge, unless that is 0.
func (f *Factory) CheckRun(ctx context.Context, run *plan.Run, maxAge time.Duration) error {
	here, err := f.Here(ctx)
	if err != nil {
		return err
	}
	return run.Check(here, process.Release(), time.Now(), maxAge)
}

// Repeat returns the options with which an evaluation repeats the recorded run: its policies, its choice of
// objects, its clock and its seed. Installed policies are read again; it is an error if they have changed.
// Access to other services has to be allowed again: a file cannot grant it.
func (f *Factory) Repeat(ctx context.Context, run *plan.Run) (*evaluate.Options, error) {
	if err := f.checkGrants(&run.Choice); err != nil {
		return nil, err
	}
	o := f.Options(engine.Request{
		Operation: run.Choice.Operation,
		User:      engine.UserInfo{Username: run.Choice.User, Groups: run.Choice.Groups},
	})
	o.Quiet, o.Strict, o.Progress = false, false, nil
	o.World.Now, o.World.Seed = run.Created, run.Seed
	o.Rules, o.Annotate = engine.RuleFilter{Only: run.Choice.Only, Skip: run.Choice.Skip}, run.Choice.Annotate
	o.AssumeBinding = run.Choice.AssumeBinding
	var err error
	if o.Documents, err = f.recordedDocuments(ctx, run, o); err != nil {
		return nil, err
	}
	if err := f.openCluster(ctx, o); err != nil {
		return nil, err
	}
	scope, err := scopeOf(o.World.Mapper, &run.Choice, o.Request)
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

func (f *Factory) recordedDocuments(ctx context.Context, run *plan.Run,
	o *evaluate.Options,
) ([]engine.Document, error) {
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

// scopeOf returns the scope of a choice.
func scopeOf(mapper meta.RESTMapper, c *plan.Choice, r engine.Request) (engine.Scope, error) {
	scope := engine.Scope{
		ClusterScoped: c.ClusterScoped, Percent: c.Percent, Seed: c.PercentSeed,
		Shard: c.Shard, Request: r,
	}
	if c.Namespace != "" {
		scope.Namespaces = strings.Split(c.Namespace, ",")
	}
	chosen := flags.Objects{Selector: c.Selector, FieldSelector: c.FieldSelector}
	var err error
	if scope.Labels, scope.Fields, err = chosen.Selectors(); err != nil {
		return scope, err
	}
	if scope.Exclude, err = Excluded(mapper, c.Exclude, c.ExcludeNamespaces); err != nil {
		return scope, err
	}
	scope.Only, err = Resolve(mapper, c.Types)
	return scope, err
}

// isInstalled reports whether a document comes from the cluster.
func isInstalled(d engine.Document) bool { return d.Origin == cluster.Origin }
