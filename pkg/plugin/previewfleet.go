package plugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/factory"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fleet"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// PreviewFleet is a preview on several clusters.
type PreviewFleet struct {
	*PreviewOptions // how it is shown; what is evaluated belongs to the clusters
	fleet           *fleet.Fleet
	factory         *factory.Fleet
	codes           map[string]int   // the exit codes of the clusters' runs
	absent          map[string]error // why there is no object on a cluster
	blocked         []string         // why apply-existing would write nothing to a cluster
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
	o := &PreviewFleet{factory: w, codes: map[string]int{}, absent: map[string]error{}}
	if o.PreviewOptions, err = f.shown(c, w.Factory, w.OutputOptions(f.Output, request), args); err != nil {
		return nil, err
	}
	if f.Save != "" {
		if err := plan.MakeDirectory(f.Save); err != nil {
			return nil, fmt.Errorf("--save: %w", err)
		}
	}
	o.ErrOut = w.Streams.ErrOut
	o.fleet = w.Fleet(&f.Contexts, func(ctx context.Context, m *fleet.Member) error {
		one := &PreviewOptions{Printer: m, Hints: &output.HintCollector{}, ExitCode: true}
		code := ExitNothing
		child, err := w.At(m, false)
		if err == nil {
			err = f.at(w, m).evaluated(c, child, args, request, one)
		}
		if err == nil {
			code, err = one.run(ctx)
		}
		if err != nil && errors.Is(err, one.NotFound) {
			o.missing(m, err)
			return nil
		}
		o.ended(m, code, one.Hints.Blocked)
		return worded(err)
	})
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

// worded returns an error, in kubectl's words where a server refuses connections.
func worded(err error) error {
	if utilnet.IsConnectionRefused(err) {
		return errors.New(textOf(err))
	}
	return err
}

// ended notes how the run on a cluster ended.
func (o *PreviewFleet) ended(m *fleet.Member, code int, blocked string) {
	o.fleet.Lock()
	defer o.fleet.Unlock()
	o.codes[m.Name] = code
	o.blocked = append(o.blocked, blocked)
}

// missing notes that none of the named objects is on a cluster: they may be on others.
func (o *PreviewFleet) missing(m *fleet.Member, err error) {
	o.fleet.Lock()
	defer o.fleet.Unlock()
	o.codes[m.Name], o.absent[m.Name] = ExitOK, err
	m.End = output.Summary{}
}

// Run evaluates all clusters, prints, and returns the exit code: that of a preview of all their objects.
func (o *PreviewFleet) Run(ctx context.Context) (int, error) {
	code, err := o.Metrics.finish(o.run(ctx))
	return code, o.Masker.Error(errors.Join(err, o.Reports.Discard(), o.End(), o.fleet.Discard()))
}

func (o *PreviewFleet) run(ctx context.Context) (int, error) {
	o.fleet.Gather(ctx)
	summary := o.fleet.Summary()
	if ctx.Err() != nil {
		return ExitInterrupted, &InterruptedError{Objects: summary.Objects}
	}
	if err := o.factory.TellNotices(o.fleet); err != nil {
		return ExitIncomplete, err
	}
	if len(o.absent) == len(o.fleet.Members) {
		return ExitNothing, o.absent[o.fleet.Members[0].Name]
	}
	if !slices.Contains(o.blocked, "") {
		o.Hints.Blocked = o.blocked[0]
	}
	err := o.fleet.Replay(ctx, func(e output.Event) error {
		if e, is := e.(output.Evaluated); is {
			o.Hints.Add(e.Change)
			o.Metrics.Evaluated(e.Change)
		}
		return o.Printer.Print(e)
	})
	if interrupted(err) {
		return ExitInterrupted, errors.Join(&InterruptedError{Objects: summary.Objects}, output.Flush(o.Printer))
	}
	if err == nil {
		err = errors.Join(o.Printer.Print(output.Summary{Summary: summary}), o.Printer.Close())
	}
	if err != nil {
		return ExitIncomplete, err
	}
	code := fleetCode(o.codes)
	if code == ExitChanges && !o.ExitCode {
		code = ExitOK
	}
	return code, nil
}

// fleetCode returns the exit code of a run on several clusters, for those of each: what one cluster lacks
// leaves it incomplete.
func fleetCode(codes map[string]int) int {
	count := map[int]int{}
	for _, code := range codes {
		count[code]++
	}
	switch {
	case count[ExitNothing] == len(codes):
		return ExitNothing
	case count[ExitNothing]+count[ExitIncomplete] > 0:
		return ExitIncomplete
	case count[ExitChanges] > 0:
		return ExitChanges
	}
	return ExitOK
}
