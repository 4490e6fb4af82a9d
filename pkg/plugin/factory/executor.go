package factory

import (
	"path/filepath"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/cluster"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

// Executor returns what verifies and writes changes.
func (f *Factory) Executor(write *flags.Write, report func(*apply.Result) error) *apply.Executor {
	prompt := apply.NewPrompt(f.Streams.In, f.Streams.ErrOut, f.Client.Info())
	prompt.Yes = write.Yes || write.Rehearses()
	return &apply.Executor{
		Options: write.ExecutorOptions(), Hooks: apply.Hooks{Report: report}, Prompt: prompt, Access: cluster.NewAuthorizer(f.Client), Mapper: f.Client.Mapper(),
		Masker: f.Secrets, ErrOut: f.Streams.ErrOut, Meter: f.progress,
		Writer: &apply.Writer{
			Server: cluster.RetryingClient{Client: f.Client}, Manager: write.FieldManager,
			ForceConflicts: write.ForceConflicts, TakeFrom: write.TakeFrom, DryRun: apply.DryRun(write.DryRun),
			HasStatus: f.Client.HasStatus,
		},
	}
}

// Journal returns the function that begins the journal of a run: the file that the flags name,
// or one in journal.Directory.
func (f *Factory) Journal(write *flags.Write, h journal.Header) (func() (*journal.Writer, error), error) {
	path := write.Journal
	if path == "" {
		dir, err := journal.Directory()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, journal.FileName(h.Started, f.Client.Info().Context, h.ID))
	}
	return func() (*journal.Writer, error) { return journal.Create(path, h, f.JournalOptions(write)) }, nil
}

// JournalOptions returns what a journal keeps.
func (f *Factory) JournalOptions(write *flags.Write) journal.Options {
	return journal.Options{Masker: f.Secrets, Secrets: write.JournalSecrets}
}
