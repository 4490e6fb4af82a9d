package output_test

import (
	"errors"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// A report that is closed without the summary would show an empty run.
func TestTeeHandsTheSummaryToAll(t *testing.T) {
	broken, sound := &counter{err: errors.New("no space left")}, &counter{}
	tee := output.Tee(broken, sound)
	if err := tee.Print(output.Evaluated{Change: &engine.Change{}}); !errors.Is(err, broken.err) || sound.events != 0 {
		t.Errorf("a change: %v, and %d events behind the failure", err, sound.events)
	}
	if err := tee.Print(output.Summary{}); !errors.Is(err, broken.err) || sound.events != 1 {
		t.Errorf("the summary: %v, and %d events behind the failure", err, sound.events)
	}
}

type counter struct {
	events int
	err    error
}

func (c *counter) Print(output.Event) error { c.events++; return c.err }

func (c *counter) Close() error { return c.err }
