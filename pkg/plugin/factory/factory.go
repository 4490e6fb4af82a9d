// Package factory turns flags into what commands run: readers of policies and
// objects, clients, printers and files.
package factory

import (
	"cmp"
	"fmt"
	"io"
	"log"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/snapshot"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/input"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/preview"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

// Factory turns flags into the parts of a run.
type Factory struct {
	*flags.Evaluate
	Streams     genericiooptions.IOStreams // ErrOut is for notices: it masks, and escapes
	ShowSecrets bool
	Client      *cluster.Client // nil offline

	stdout   io.Writer       // the original; Streams.Out may wrap it
	stderr   io.Writer       // for text that is masked and escaped already
	progress *progress.Meter // nil shows none
	reader   *input.Reader
	snapshot *snapshot.Snapshot // the objects of a run without a cluster
	overlay  *snapshot.Overlay  // what policies read, where files lie over the cluster; nil for the cluster alone
	unread   preview.UnreadInputs
}

// Open makes a Factory for the flags, with a client that can only read unless the command
// writes, or with none if the objects are manifests. It sends no request.
func Open(evaluate *flags.Evaluate, streams genericiooptions.IOStreams, showSecrets, writes bool) (*Factory, error) {
	f, err := OpenShared(evaluate, streams, showSecrets)
	if err != nil || evaluate.Objects.Offline() {
		return f, err
	}
	return f, f.connect(writes)
}

// OpenShared makes a Factory for what the runs on several clusters share. It has no client.
func OpenShared(evaluate *flags.Evaluate, streams genericiooptions.IOStreams, showSecrets bool) (*Factory, error) {
	if err := evaluate.Validate(); err != nil {
		return nil, err
	}
	f := &Factory{Evaluate: evaluate, Streams: streams, stdout: streams.Out, ShowSecrets: showSecrets, reader: &input.Reader{Stdin: streams.In}}
	f.showProgress()
	f.stderr = f.Streams.ErrOut
	f.Streams.ErrOut = redact.NewWriter(f.stderr)
	LogTo(redact.NewWriter(f.stderr)) // beside the progress
	return f, nil
}

// connect makes the client.
func (f *Factory) connect(writes bool) error {
	options := cluster.Options{
		QPS: f.Evaluate.Client.QPS, Burst: f.Evaluate.Client.Burst,
		ReadOnly: !writes, ChunkSize: cmp.Or(f.Objects.ChunkSize, -1), Waiting: f.progress.Waiting,
	}
	if !f.Quiet {
		options.Warnings = f.Streams.ErrOut
	}
	var err error
	f.Client, err = cluster.New(f.Config, options)
	return err
}

// Warn prints a warning, unless --quiet is set.
func (f *Factory) Warn(err error) {
	if !f.Quiet {
		fmt.Fprintf(f.Streams.ErrOut, "warning: %v\n", err)
	}
}

// warnAt warns of a document; a strict run takes that for an error, which leaves it incomplete, whether it is shown or not.
func (f *Factory) warnAt(origin, text string) {
	err := fmt.Errorf("%s: %s", origin, text)
	if f.Policies.Strict {
		f.fail(err)
		return
	}
	f.Warn(err)
}

// note prints what a user should know, unless --quiet is set.
func (f *Factory) note(origin, text string) {
	if !f.Quiet {
		fmt.Fprintf(f.Streams.ErrOut, "note: %s: %s\n", origin, text)
	}
}

// fail reports an error that leaves the run incomplete.
func (f *Factory) fail(err error) {
	fmt.Fprintf(f.Streams.ErrOut, "error: %v\n", err)
	f.unread.Errs = append(f.unread.Errs, err)
}

// leave reports an input that is not used. Few users may read all of them, so that a refusal is
// only a warning, which --quiet does not suppress and the summary counts, unless the run is
// strict. Any other error leaves the run incomplete.
func (f *Factory) leave(err error) {
	err = fmt.Errorf("%w; evaluated as if there were none", err)
	if apierrors.IsForbidden(err) && !f.Policies.Strict {
		fmt.Fprintf(f.Streams.ErrOut, "warning: %v\n", err)
		f.unread.Forbidden++
		return
	}
	f.fail(err)
}

// LogTo has libraries log to a writer of messages: klog, and the log package of Go, in which
// kustomize writes.
func LogTo(out io.Writer) {
	klog.SetOutput(out)
	log.SetFlags(0)
	log.SetOutput(out)
}
