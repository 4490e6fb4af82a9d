package plugin_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/progress"
)

// ticking is a clock whose ticks the test makes.
type ticking struct {
	*clocktesting.FakeClock
	ticks chan time.Time
}

func (t *ticking) NewTicker(time.Duration) clock.Ticker { return t }
func (t *ticking) C() <-chan time.Time                  { return t.ticks }
func (t *ticking) Stop()                                {}

// onVariant is a printer that has the progress drawn where a variant is printed.
type onVariant struct {
	output.Printer
	clock *ticking
}

func (p onVariant) Print(e output.Event) error {
	if c, ok := e.(output.Compared); ok && c.Variant != nil {
		p.clock.Step(time.Minute)
		p.clock.ticks <- p.clock.Now()
		p.clock.ticks <- p.clock.Now() // taken when the one before it has been drawn
	}
	return p.Printer.Print(e)
}

// While variants are compared, progress says how many of how many.
func TestProgressOfVariants(t *testing.T) {
	script, err := txtar.ParseFile("testdata/script/compare-variants.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range script.Files {
		write(t, dir, f.Name, string(f.Data))
	}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	evaluate := flags.NewEvaluate(genericclioptions.NewConfigFlags(false))
	f := plugin.CompareFlags{Evaluate: evaluate, Output: flags.NewOutput(formats.Diff), Contexts: flags.NewContexts(), Variants: flags.Variants{Variants: 200, Seed: 1}}
	f.Policies.Paths, f.With = []string{filepath.Join(dir, "old.yaml")}, []string{filepath.Join(dir, "new.yaml")}
	f.Objects.Filenames = []string{filepath.Join(dir, "pods.yaml")}
	c := plugin.NewCompareCommand(evaluate, "kubectl mutate", streams)
	c.SetContext(t.Context())
	o, err := f.ToOptions(c, nil, streams)
	if err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	ticks := &ticking{clocktesting.NewFakeClock(time.Unix(0, 0)), make(chan time.Time)}
	o.Progress = progress.New(progress.Options{Out: &shown, Clock: ticks})
	o.Printer = onVariant{o.Printer, ticks}
	if code, err := o.Run(t.Context()); code != plugin.ExitChanges || err != nil {
		t.Fatal(code, err)
	}
	if want := "progress: 200 of 200 variants compared"; !strings.Contains(shown.String(), want) {
		t.Errorf("got %q, want %q", &shown, want)
	}
}
