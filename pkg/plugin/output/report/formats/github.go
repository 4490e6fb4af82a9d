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

// stepSummaryVariable names the file in which GitHub Actions collects what the
// steps of a job have to say, and stepSummaryBytes is what it takes of one step.
const (
	stepSummaryVariable = "GITHUB_STEP_SUMMARY"
	stepSummaryBytes    = 1 << 20
)

func newGitHub(o output.Options) (output.Printer, error) {
	inner, room := stepSummary(o)
	if room < markdown.MinBytes {
		return github.New(o, nil), nil
	}
	summary, err := markdown.New(inner, room)
	return github.New(o, summary), err
}

func newGitHubResults(o output.Options) report.Results {
	inner, room := stepSummary(o)
	if room < markdown.MinBytes {
		return github.NewResults(o, nil)
	}
	return github.NewResults(o, markdown.NewResults(inner, room))
}

// stepSummary are the options of what is added to the summary of the step, and how
// many bytes there is room for: 0 where no runner collects it.
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

// appender is a file to which others have written before, and will write.
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
