package preview

import (
	"context"
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
)

// ClusterRuns are runs that read several clusters, side by side, and are shown as one.
type ClusterRuns struct {
	factory *factory.Fleet
	*factory.FleetRun
}

// ReadClusters returns the runs on the clusters of flags.
func ReadClusters(w *factory.Fleet, chosen *flags.Contexts, run func(context.Context, *factory.Member, *factory.Factory) (int, error)) *ClusterRuns {
	return &ClusterRuns{w, w.Fleet(chosen, func(ctx context.Context, m *factory.Member) (int, error) {
		code := process.ExitNothing
		at, err := w.At(m)
		if err == nil {
			code, err = run(ctx, m, at)
		}
		return code, process.ConnectionError(err)
	})}
}

// RunAll runs all of them, prints what they have to say, and returns the exit code of the whole. The error
// says that the user stopped it, or that there is no object on any cluster.
func (r *ClusterRuns) RunAll(ctx context.Context) (int, error) {
	r.Gather(ctx)
	if err := r.factory.TellNotices(r.FleetRun); err != nil {
		return process.ExitIncomplete, err
	}
	if ctx.Err() != nil {
		return process.ExitInterrupted, process.InterruptedAfter(r.Objects())
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

// Show prints what was found, and then the event that ends the run. Found is called with each event before.
func (r *ClusterRuns) Show(ctx context.Context, p output.Printer, found func(output.Event), end output.Event) error {
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
	return errors.Join(p.Print(end), p.Close())
}

// code returns the exit code of the whole: what one cluster lacks leaves it incomplete.
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
