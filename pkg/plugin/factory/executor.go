package factory

import (
	"path/filepath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// Executor returns what verifies and writes changes.
func (w *Factory) Executor(f *flags.Write, report func(*apply.Result) error) *apply.Executor {
	prompt := apply.NewPrompt(w.Streams.In, w.Streams.ErrOut, w.Client.Info())
	prompt.Yes = f.Yes || f.Rehearses()
	return &apply.Executor{
		Options: f.Options(), Report: report, Prompt: prompt, Access: w.Client, Mapper: w.Client.Mapper(),
		Masker: w.Secrets, ErrOut: w.Streams.ErrOut, Meter: w.progress,
		Writer: &apply.Writer{
			Server: cluster.RetryingClient{Client: w.Client}, Manager: f.FieldManager,
			ForceConflicts: f.ForceConflicts, TakeFrom: f.TakeFrom, DryRun: apply.DryRun(f.DryRun),
			HasStatus: w.Client.HasStatus,
		},
	}
}

// Journal returns the function that begins the journal of a run: the file that the flags name,
// or one in journal.Directory.
func (w *Factory) Journal(f *flags.Write, h journal.Header) (func() (*journal.Writer, error), error) {
	path := f.Journal
	if path == "" {
		dir, err := journal.Directory()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, journal.FileName(h.Started, w.Client.Info().Context, h.ID))
	}
	return func() (*journal.Writer, error) { return journal.Create(path, h, w.JournalOptions(f)) }, nil
}

// JournalOptions returns what a journal keeps.
func (w *Factory) JournalOptions(f *flags.Write) journal.Options {
	return journal.Options{Masker: w.Secrets, Secrets: f.JournalSecrets}
}
