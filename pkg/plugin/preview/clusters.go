package preview

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// ClusterRuns are runs on several clusters, side by side, that are shown as one.
type ClusterRuns struct {
	factory *factory.Fleet
	*factory.FleetRun
	// Interrupted is set if the user stopped the run, and names the unfinished clusters.
	Interrupted error
}

// ReadClusters returns the runs on the chosen clusters.
func ReadClusters(w *factory.Fleet, chosen *flags.Contexts,
	run func(context.Context, *factory.Member, *factory.Factory) (int, error),
) *ClusterRuns {
	all := w.Fleet(chosen)
	for _, m := range all.Members {
		var at *factory.Factory
		m.Answers = func(ctx context.Context) (err error) {
			if at, err = w.At(m); err == nil {
				err = at.Client.Answers(ctx)
			}
			return err
		}
		m.Run = func(ctx context.Context, m *factory.Member) (int, error) {
			code, err := run(ctx, m, at)
			if utilnet.IsConnectionRefused(err) {
				err = errors.New(process.Message(err))
			}
			return code, err
		}
	}
	return &ClusterRuns{factory: w, FleetRun: all}
}

// RunAll runs all of them, prints their messages, and returns the common exit code. The results of an
// interrupted run can be shown. The error says that no cluster has an object.
func (r *ClusterRuns) RunAll(ctx context.Context) (int, error) {
	r.Gather(ctx)
	if err := r.factory.TellNotices(r.FleetRun); err != nil {
		return process.ExitIncomplete, err
	}
	if ctx.Err() != nil {
		r.Interrupted = process.InterruptedAfter(r.Objects())
		if left := r.Unfinished(); len(left) > 0 {
			r.Interrupted = fmt.Errorf("%w, waiting for %s", r.Interrupted, engine.Few(left))
		}
		if !errors.Is(context.Cause(ctx), context.Canceled) { // the memory limit
			return process.ExitInterrupted, r.Interrupted
		}
		return process.ExitInterrupted, nil
	}
	absent := 0
	for _, m := range r.Members {
		if m.Absent != nil {
			absent++
		}
	}
	if absent == len(r.Members) {
		return process.ExitNothing, r.Members[0].Absent
	}
	return r.code(), nil
}

// Show prints the results, each after a call of found, and then the event that ends the run. The error is
// Interrupted if set.
func (r *ClusterRuns) Show(ctx context.Context, p output.Printer, found func(output.Event),
	end output.Event,
) error {
	if r.Interrupted != nil {
		ctx = context.WithoutCancel(ctx)
	}
	err := r.Replay(ctx, func(e output.Event) error {
		found(e)
		return p.Print(e)
	})
	if process.Interrupted(err) {
		return errors.Join(process.InterruptedAfter(r.Objects()), output.Flush(p))
	}
	if err != nil {
		return err
	}
	return errors.Join(r.Interrupted, p.Print(end), p.Close())
}

// code returns the common exit code: one incomplete cluster makes all incomplete.
func (r *ClusterRuns) code() int {
	count := map[int]int{}
	for _, m := range r.Members {
		count[m.Code]++
	}
	switch {
	case count[process.ExitNothing] == len(r.Members):
		return process.ExitNothing
	case count[process.ExitNothing]+count[process.ExitIncomplete] > 0:
		return process.ExitIncomplete
	case count[process.ExitChanges] > 0:
		return process.ExitChanges
	}
	return process.ExitOK
}

// refuseContexts makes --contexts an error of its own on a command for one cluster.
func refuseContexts(c *cobra.Command) {
	c.Flags().StringSlice("contexts", nil, "")
	c.Flags().Lookup("contexts").Hidden = true
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("contexts") {
			return fmt.Errorf("%s takes one cluster: use --context", c.Name())
		}
		return nil
	}
}
