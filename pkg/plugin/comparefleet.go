package plugin

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fleet"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// CompareFleet is a comparison on several clusters.
type CompareFleet struct {
	*CompareOptions // how it is shown; what is compared belongs to the clusters
	clusters        clusterRuns
	strict          bool
}

// toFleet returns the options of a comparison on several clusters.
func (f *CompareFlags) toFleet(c *cobra.Command, args []string, streams genericiooptions.IOStreams) (*CompareFleet, error) {
	request, sides, err := f.check(c)
	if err != nil {
		return nil, err
	}
	w, err := factory.OpenFleet(&f.Evaluate, &f.Contexts, streams, f.Output.ShowSecrets, f.With...)
	if err != nil {
		return nil, err
	}
	o := &CompareFleet{strict: f.Policies.Strict}
	if o.CompareOptions, err = f.shown(c, w.Factory, w.OutputOptions(f.Output, request)); err != nil {
		return nil, err
	}
	o.clusters = readClusters(w, &f.Contexts, func(ctx context.Context, m *fleet.Member, at *factory.Factory) (_ int, err error) {
		one := &CompareOptions{Printer: m}
		if one.Options, err = f.compared(c, at, args, request, sides); err != nil {
			return ExitNothing, err
		}
		code, err := one.run(ctx)
		if end, is := m.End.(output.Comparison); is && err == nil {
			// A cluster may lack what another has: objects, and objects that exercise a rule.
			if code = comparedCode(&end.Summary, false); code == ExitNothing && end.Problems == 0 {
				code = ExitOK
			}
		}
		return code, err
	})
	return o, nil
}

// Run compares on all clusters, prints, and returns the exit code: that of a comparison on all their objects.
func (o *CompareFleet) Run(ctx context.Context) (int, error) {
	code, err := o.run(ctx)
	return code, errors.Join(err, o.Reports.Discard())
}

func (o *CompareFleet) run(ctx context.Context) (int, error) {
	code, err := o.clusters.gather(ctx)
	if err != nil {
		return code, err
	}
	summary := o.clusters.Comparison()
	err = o.clusters.show(ctx, o.Printer, func(output.Event) {}, output.Comparison{Summary: summary})
	switch {
	case interrupted(err):
		return ExitInterrupted, err
	case err != nil:
		return ExitIncomplete, err
	case code == ExitOK || code == ExitChanges:
		return comparedCode(&summary, o.strict), nil
	case summary.Conclusion == compare.Nothing:
		return ExitNothing, nil
	}
	return code, nil
}
