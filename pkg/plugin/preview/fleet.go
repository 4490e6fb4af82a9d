package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write/plan"
)

// onClusters adds previews of several clusters to options, each with its own plan.
func (f *Flags) onClusters(c *cobra.Command, w *factory.Fleet, args []string, request engine.Request,
	o *Options,
) error {
	if o.ErrOut, o.saved = w.Streams.ErrOut, f.Save; f.Save != "" {
		if err := plan.MakeDirectory(f.Save); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	o.Clusters = ReadClusters(w, &f.Contexts,
		func(ctx context.Context, m *factory.Member, at *factory.Factory) (code int, err error) {
			one, own := &Options{Printer: m, Hints: &output.HintCollector{}, ExitCode: true}, *f
			if f.Save != "" {
				own.Save = filepath.Join(f.Save, plan.FileName(slices.Index(w.Contexts, m.Name)+1, m.Name))
			}
			code = process.ExitNothing
			if err = own.evaluated(c, at, args, request, one); err == nil {
				code, err = one.run(ctx)
				m.Blocked = one.Hints.Blocked
			}
			if err != nil && errors.Is(err, one.NotFound) {
				m.Absent, m.End = err, output.Summary{}
				return process.ExitOK, nil
			}
			return code, err
		})
	return nil
}

// runClusters evaluates all clusters, prints the results, and returns the exit code of a preview of all
// objects.
func (o *Options) runClusters(ctx context.Context) (int, error) {
	code, err := o.Clusters.RunAll(ctx)
	if err != nil {
		return code, err
	}
	if err := o.saveRest(); err != nil {
		return process.ExitIncomplete, err
	}
	o.Hints.Blocked = o.blockedFleet()
	err = o.Clusters.Show(ctx, o.Printer, func(e output.Event) {
		if e, is := e.(output.Evaluated); is {
			o.Hints.Add(e.Change)
			o.Metrics.Evaluated(e.Change)
		}
	}, output.Summary{Summary: o.Clusters.Summary()})
	switch {
	case process.Interrupted(err):
		return process.ExitInterrupted, err
	case err != nil:
		return process.ExitIncomplete, err
	case code == process.ExitChanges && !o.ExitCode:
		return process.ExitOK, nil
	}
	return code, nil
}

// saveRest saves an empty plan for each cluster without one, with the reason why it was not evaluated.
func (o *Options) saveRest() error {
	var errs []error
	for i, m := range o.Clusters.Members {
		path := filepath.Join(o.saved, plan.FileName(i+1, m.Name))
		if _, err := os.Stat(path); o.saved == "" || err == nil {
			continue
		}
		rest := plan.Plan{Run: plan.NewRun(plan.Cluster{Context: m.Name, Server: m.Server},
			process.Release(), time.Now())}
		if m.Absent == nil {
			why := append(slices.Clone(m.Problems), m.Err, errors.New("there is no plan of it"))
			rest.Problem, rest.Incomplete = cmp.Or(why...).Error(), true
		}
		errs = append(errs, plan.Save(path, &rest))
	}
	return errors.Join(errs...)
}

// blockedFleet returns why apply-existing would write nothing: clusters without a plan were not evaluated,
// or the reason of one cluster.
func (o *Options) blockedFleet() string {
	if o.Clusters.Interrupted != nil {
		return "the run was interrupted"
	}
	var lost []string
	for _, m := range o.Clusters.Members {
		if m.Code == process.ExitNothing && o.saved == "" {
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
	for _, m := range o.Clusters.Members {
		if m.Blocked != "" {
			return m.Name + ": " + m.Blocked
		}
	}
	return ""
}
