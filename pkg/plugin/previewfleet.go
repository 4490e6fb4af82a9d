package plugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fleet"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// onClusters adds to options the previews of several clusters, whose plans have files of their own.
func (f *PreviewFlags) onClusters(c *cobra.Command, w *factory.Fleet, args []string, request engine.Request, o *PreviewOptions) error {
	if o.ErrOut, o.saved = w.Streams.ErrOut, f.Save != ""; o.saved {
		if err := plan.MakeDirectory(f.Save); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	o.clusters = readClusters(w, &f.Contexts, func(ctx context.Context, m *fleet.Member, at *factory.Factory) (code int, err error) {
		one, own := &PreviewOptions{Printer: m, Hints: &output.HintCollector{}, ExitCode: true}, *f
		if o.saved {
			own.Save = filepath.Join(f.Save, plan.FileName(slices.Index(w.Contexts, m.Name)+1, m.Name))
		}
		code = ExitNothing
		if err = own.evaluated(c, at, args, request, one); err == nil {
			code, err = one.run(ctx)
			m.Blocked = one.Hints.Blocked
		}
		if err != nil && errors.Is(err, one.NotFound) {
			m.Absent, m.End = err, output.Summary{}
			return ExitOK, nil
		}
		return code, err
	})
	return nil
}

// runClusters evaluates all clusters, prints, and returns the exit code of a preview of all their objects.
func (o *PreviewOptions) runClusters(ctx context.Context) (int, error) {
	code, err := o.clusters.gather(ctx)
	if err != nil {
		return code, err
	}
	o.Hints.Blocked = o.blockedFleet()
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

// blockedFleet returns why apply-existing would write nothing: that clusters without a plan were not evaluated, or what holds for all
// clusters; that of the first.
func (o *PreviewOptions) blockedFleet() string {
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
	for _, m := range o.clusters.Members {
		if m.Blocked == "" {
			return ""
		}
	}
	return o.clusters.Members[0].Blocked
}
