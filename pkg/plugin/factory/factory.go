package factory

import (
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Factory turns flags into the parts of a run.
type Factory struct {
	*flags.Evaluate                            // its Secrets are also what must not go into files
	Streams         genericiooptions.IOStreams // ErrOut is for notices: it masks, and escapes
	Masker          *redact.Masker             // nil when Secrets may be shown
	Client          *cluster.Client            // nil offline

	stdout   io.Writer       // the original; Streams.Out may wrap it
	stderr   io.Writer       // for text that is masked and escaped already
	progress *progress.Meter // nil shows none
	reader   *input.Reader
	snapshot *snapshot.Snapshot

	filters     cluster.Filters
	filtersRead bool
	unread      unreadInputs
}

// Open makes a Factory for the flags, with a client that can only read unless the command
// writes, or with none if the objects are manifests. It sends no request.
func Open(f *flags.Evaluate, streams genericiooptions.IOStreams, showSecrets, writes bool) (*Factory, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	w := &Factory{Evaluate: f, Streams: streams, stdout: streams.Out, reader: &input.Reader{Stdin: streams.In}}
	if !showSecrets {
		w.Masker = w.Secrets
	}
	w.showProgress()
	w.stderr = w.Streams.ErrOut
	w.Streams.ErrOut = Notices(w.stderr, w.Masker)
	klog.SetOutput(Notices(w.stderr, w.Secrets)) // beside the progress
	if f.Objects.Offline() {
		return w, nil
	}
	options := cluster.Options{
		QPS: f.Client.QPS, Burst: f.Client.Burst,
		ReadOnly: !writes, ChunkSize: f.Objects.ChunkSize, Waiting: w.progress.Waiting,
	}
	if !f.Quiet {
		options.Warnings = w.Streams.ErrOut
	}
	var err error
	w.Client, err = cluster.New(f.Config, options)
	return w, err
}

// Warn prints a warning, unless --quiet is set.
func (w *Factory) Warn(err error) {
	if !w.Quiet {
		fmt.Fprintf(w.Streams.ErrOut, "warning: %v\n", err)
	}
}

func (w *Factory) warnAt(origin, text string) { w.Warn(fmt.Errorf("%s: %s", origin, text)) }

// Notices returns a writer for messages. It masks the values of Secrets that a masker knows,
// and escapes what could act on a terminal; a nil masker masks nothing. Each message has to be
// written with one call, so that no value is split.
func Notices(out io.Writer, m *redact.Masker) io.Writer { return notices{out, m} }

type notices struct {
	io.Writer
	masker *redact.Masker
}

// Write writes the text as it may be shown.
func (n notices) Write(p []byte) (int, error) {
	if _, err := io.WriteString(n.Writer, redact.EscapeLines(n.masker.Text(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}
