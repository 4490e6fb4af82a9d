package formats

import (
	"errors"
	"io"
	"os"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/file"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/github"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/markdown"
)

// stepSummaryVariable names the file in which GitHub Actions collects the summaries of
// the steps of a job, and stepSummaryBytes is what it takes of one step.
const (
	stepSummaryVariable = "GITHUB_STEP_SUMMARY"
	stepSummaryBytes    = 1 << 20
)

// newGitHub writes annotations, and the summary of the step where a runner collects it.
func newGitHub(o output.Options) output.Format {
	annotations := report.New(o, github.New(o))
	inner, room := stepSummary(o)
	switch {
	case room < markdown.MinBytes:
		return annotations
	case o.Writes:
		return summarized{annotations, report.New(inner, markdown.NewWrites(inner, room))}
	}
	return summarized{annotations, markdown.NewPreview(inner, room)}
}

// summarized are annotations and the summary of a step.
type summarized struct {
	*report.Printer
	summary output.Format
}

// Print implements output.Format.
func (s summarized) Print(e output.Shown) error {
	return errors.Join(s.Printer.Print(e), s.summary.Print(e))
}

// Close implements output.Format.
func (s summarized) Close() error { return errors.Join(s.Printer.Close(), s.summary.Close()) }

// stepSummary returns the options of what is added to the summary of the step, and how
// many bytes there is room for: 0 if no runner collects it.
func stepSummary(o output.Options) (output.Options, int) {
	path := os.Getenv(stepSummaryVariable)
	if path == "" {
		return o, 0
	}
	room := stepSummaryBytes
	if info, err := os.Stat(path); err == nil {
		room -= int(min(info.Size(), stepSummaryBytes))
	}
	o.Out = appender(path)
	return o, room
}

// appender is a file to which other steps write as well.
type appender string

// Write appends at once.
func (path appender) Write(b []byte) (int, error) {
	f, err := os.OpenFile(string(path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, file.Shared)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	return n, errors.Join(err, f.Close())
}

var _ io.Writer = appender("")
