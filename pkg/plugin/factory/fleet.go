package factory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/fleet"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// Fleet makes the parts of runs on several clusters: a Factory for what they share, which has no client,
// and one for each cluster.
type Fleet struct {
	*Factory
	Contexts []string
	notices  fleet.Notices // of the clusters' runs
	stdin    []byte        // what "-" stands for, for each of them
	terminal bool          // standard error is one
}

// OpenFleet is Open for the contexts that flags choose. Two that would evaluate the same objects are one. More are
// paths that each run reads beside those of the flags.
func OpenFleet(evaluate *flags.Evaluate, chosen *flags.Contexts, streams genericiooptions.IOStreams, showSecrets bool, more ...string) (*Fleet, error) {
	shared, err := OpenShared(evaluate, streams, showSecrets)
	if err != nil {
		return nil, err
	}
	f := &Fleet{Factory: shared, terminal: printers.IsTerminal(streams.ErrOut)}
	config, err := evaluate.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, err
	}
	all, err := fleet.Contexts(&config, chosen.Names)
	if err != nil {
		return nil, err
	}
	for _, name := range fleet.Repeated(chosen.Names) {
		f.note("--contexts", name+" is named twice; it is taken once")
	}
	var notes []string
	f.Contexts, notes = fleet.Distinct(&config, all, evaluate.Objects.AllNamespaces || shared.NamespacesTyped())
	for _, text := range notes {
		f.note("--contexts", text)
	}
	return f, f.readStdin(more)
}

// readStdin keeps standard input, if it is named, and refuses pipes, which can be read once.
func (f *Fleet) readStdin(more []string) error {
	paths := slices.Concat(f.Policies.Paths, f.Objects.World, []string{f.Context.Values}, more)
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
			return fmt.Errorf("%s is a pipe, which cannot be read for each cluster: use a file, or -p -", path)
		}
	}
	if !slices.Contains(paths, "-") || f.Streams.In == nil {
		return nil
	}
	var err error
	f.stdin, err = io.ReadAll(f.Streams.In)
	return err
}

// Fleet returns the run on all clusters.
func (f *Fleet) Fleet(chosen *flags.Contexts, run func(context.Context, *fleet.Member) (int, error)) *fleet.Fleet {
	out := &fleet.Fleet{AtOnce: chosen.AtOnce, ShowSecrets: f.ShowSecrets, Meter: f.progress}
	for _, name := range f.Contexts {
		out.Members = append(out.Members, &fleet.Member{Name: name, Run: run})
	}
	if f.terminal && !f.Quiet {
		out.Ended = func(m *fleet.Member) { fmt.Fprintf(f.Streams.ErrOut, "%s\n", m) }
	}
	return out
}

// At returns the Factory of one of the clusters, whose client can only read. Its messages go to the Notices.
func (f *Fleet) At(m *fleet.Member) (*Factory, error) {
	evaluate := *f.Evaluate
	evaluate.Config = flags.ConfigOf(f.Config, m.Name)
	errOut := f.notices.Of(m.Name)
	out := &Factory{
		Evaluate: &evaluate, ShowSecrets: f.ShowSecrets, stdout: io.Discard, stderr: errOut,
		Streams: genericiooptions.IOStreams{In: bytes.NewReader(f.stdin), Out: io.Discard, ErrOut: errOut},
	}
	out.reader = &input.Reader{Stdin: out.Streams.In}
	err := out.connect(false)
	if err == nil {
		m.Server = out.Client.Info().Server
	}
	return out, err
}

// TellNotices prints what the runs on the clusters had to say, and their errors but those of runs that the user stopped.
func (f *Fleet) TellNotices(run *fleet.Fleet) error {
	for _, m := range run.Members {
		if m.Err != nil && !errors.Is(m.Err, context.Canceled) {
			fmt.Fprintf(f.notices.Of(m.Name), "error: %v\n", m.Err)
		}
	}
	return f.notices.Flush(f.stderr, f.Contexts)
}

// OnAll returns the options of printers for a run on several clusters.
func OnAll(o output.Options, contexts []string) output.Options {
	o.Context.Context, o.Context.Time = strings.Join(contexts, ", "), time.Now().UTC().Format(time.RFC3339)
	return o
}

// OutputOptions is that of a Factory; the context of the run is all of them.
func (f *Fleet) OutputOptions(out flags.Output, request engine.Request) output.Options {
	o := OnAll(f.Factory.OutputOptions(out, request), f.Contexts)
	if !f.NamespacesTyped() {
		o.Context.Namespace = ""
	}
	return o
}
