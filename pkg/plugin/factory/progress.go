package factory

import (
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
)

// showProgress shows the progress of the run on standard error, unless --quiet is set. What is
// written to the same terminal clears the line first.
func (f *Factory) showProgress() {
	if f.Quiet {
		return
	}
	errOut := f.Streams.ErrOut
	f.progress = progress.New(progress.Options{
		Out: errOut, Terminal: printers.IsTerminal(errOut), Offline: f.Objects.Offline(),
		Width: func() int {
			if size := (term.TTY{Out: errOut}).GetSize(); size != nil && size.Width > 0 {
				return int(size.Width)
			}
			return 80
		},
	})
	f.Streams.ErrOut = f.progress.Beside(errOut)
	if printers.IsTerminal(f.stdout) {
		f.Streams.Out = f.progress.Beside(f.stdout)
	}
}
