package plugin

import (
	"context"
	"errors"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fleet"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// clusterRuns are runs that read several clusters, side by side, and are shown as one.
type clusterRuns struct {
	factory *factory.Fleet
	*fleet.Fleet
}

// readClusters returns the runs on the clusters of flags.
func readClusters(w *factory.Fleet, chosen *flags.Contexts, run func(context.Context, *fleet.Member, *factory.Factory) (int, error)) *clusterRuns {
	return &clusterRuns{w, w.Fleet(chosen, func(ctx context.Context, m *fleet.Member) (int, error) {
		code := ExitNothing
		at, err := w.At(m)
		if err == nil {
			code, err = run(ctx, m, at)
		}
		return code, worded(err)
	})}
}

// gather runs all of them, prints what they have to say, and returns the exit code of the whole. The error says that the
// user stopped it, or that there is no object on any cluster.
func (r *clusterRuns) gather(ctx context.Context) (int, error) {
	r.Gather(ctx)
	if err := r.factory.TellNotices(r.Fleet); err != nil {
		return ExitIncomplete, err
	}
	if ctx.Err() != nil {
		return ExitInterrupted, interruptedAfter(r.Objects())
	}
	absent := 0
	for _, m := range r.Members {
		if m.Absent != nil {
			absent++
		}
	}
	if absent == len(r.Members) {
		return ExitNothing, r.Members[0].Absent
	}
	return r.code(), nil
}

// show prints what was found, and then the event that ends the run. Found is called with each event before.
func (r *clusterRuns) show(ctx context.Context, p output.Printer, found func(output.Event), end output.Event) error {
	err := r.Replay(ctx, func(e output.Event) error {
		found(e)
		return p.Print(e)
	})
	if interrupted(err) {
		return errors.Join(interruptedAfter(r.Objects()), output.Flush(p))
	}
	if err != nil {
		return err
	}
	return errors.Join(p.Print(end), p.Close())
}

// code returns the exit code of the whole: what one cluster lacks leaves it incomplete.
func (r *clusterRuns) code() int {
	count := map[int]int{}
	for _, m := range r.Members {
		count[m.Code]++
	}
	switch {
	case count[ExitNothing] == len(r.Members):
		return ExitNothing
	case count[ExitNothing]+count[ExitIncomplete] > 0:
		return ExitIncomplete
	case count[ExitChanges] > 0:
		return ExitChanges
	}
	return ExitOK
}
