package plugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fleet"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// PreviewFleet is a preview on several clusters.
type PreviewFleet struct {
	*PreviewOptions // how it is shown; what is evaluated belongs to the clusters
	clusters        clusterRuns
	hints           map[*fleet.Member]*output.HintCollector // why apply-existing would write nothing to a cluster
	saved           bool                                    // there is a plan for each cluster that was read
}

// toFleet returns the options of a preview on several clusters.
func (f *PreviewFlags) toFleet(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (*PreviewFleet, error) {
	request, err := f.check(c)
	if err != nil {
		return nil, err
	}
	w, err := factory.OpenFleet(&f.Evaluate, &f.Contexts, streams, f.Output.ShowSecrets)
	if err != nil {
		return nil, err
	}
	o := &PreviewFleet{hints: map[*fleet.Member]*output.HintCollector{}, saved: f.Save != ""}
	if o.PreviewOptions, err = f.shown(c, w.Factory, w.OutputOptions(f.Output, request), args); err != nil {
		return nil, err
	}
	if f.Save != "" {
		if err := plan.MakeDirectory(f.Save); err != nil {
			return nil, fmt.Errorf("--save: %w", err)
		}
	}
	o.ErrOut = w.Streams.ErrOut
	o.clusters = readClusters(w, &f.Contexts, func(ctx context.Context, m *fleet.Member, at *factory.Factory) (code int, err error) {
		one := &PreviewOptions{Printer: m, Hints: o.hints[m], ExitCode: true}
		code = ExitNothing
		if err = f.at(w, m).evaluated(c, at, args, request, one); err == nil {
			code, err = one.run(ctx)
		}
		if err != nil && errors.Is(err, one.NotFound) {
			m.Absent, m.End = err, output.Summary{}
			return ExitOK, nil
		}
		return code, err
	})
	for _, m := range o.clusters.Members {
		o.hints[m] = &output.HintCollector{}
	}
	return o, nil
}

// at returns the flags for a cluster, whose plan has a file of its own.
func (f *PreviewFlags) at(w *factory.Fleet, m *fleet.Member) *PreviewFlags {
	out := *f
	if f.Save != "" {
		out.Save = filepath.Join(f.Save, plan.FileName(slices.Index(w.Contexts, m.Name)+1, m.Name))
	}
	return &out
}

// Run evaluates all clusters, prints, and returns the exit code: that of a preview of all their objects.
func (o *PreviewFleet) Run(ctx context.Context) (int, error) {
	code, err := o.Metrics.finish(o.run(ctx))
	return code, errors.Join(err, o.Reports.Discard(), o.End())
}

func (o *PreviewFleet) run(ctx context.Context) (int, error) {
	code, err := o.clusters.gather(ctx)
	if err != nil {
		return code, err
	}
	o.Hints.Blocked = o.blocked()
	err = o.clusters.show(ctx, o.Printer, func(e output.Event) {
		if e, is := e.(output.Evaluated); is {
			o.Hints.Add(e.Change)
			o.Metrics.Evaluated(e.Change)
		}
	}, output.Summary{Summary: o.clusters.Summary()})
	switch {
	case interrupted(err):
		return ExitInterrupted, err
	case err != nil:
		return ExitIncomplete, err
	case code == ExitChanges && !o.ExitCode:
		return ExitOK, nil
	}
	return code, nil
}

// blocked returns why apply-existing would write nothing: that clusters without a plan were not evaluated, or what holds for all
// clusters; that of the first.
func (o *PreviewFleet) blocked() string {
	var lost []string
	for _, m := range o.clusters.Members {
		if m.Code == ExitNothing && !o.saved {
			lost = append(lost, m.Name)
		}
	}
	if len(lost) > 0 {
		verb := " was"
		if len(lost) > 1 {
			verb = " were"
		}
		return engine.Few(lost) + verb + " not evaluated (apply-existing --on-error continue writes to the others)"
	}
	first := ""
	for i, m := range o.clusters.Members {
		text := o.hints[m].Blocked
		if text == "" {
			return ""
		}
		if i == 0 {
			first = text
		}
	}
	return first
}
