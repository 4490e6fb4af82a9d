package plugin_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/compare"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/flags"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/process"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

// onVariant is a printer that lets time pass where a variant is printed, so that the progress is drawn.
type onVariant struct{ output.Printer }

func (p onVariant) Print(e output.Event) error {
	if c, ok := e.(output.Compared); ok && c.Variant != nil {
		time.Sleep(time.Minute)
	}
	return p.Printer.Print(e)
}

// While variants are compared, progress says how many of how many.
func TestProgressOfVariants(t *testing.T) { synctest.Test(t, testProgressOfVariants) }

func testProgressOfVariants(t *testing.T) {
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
	evaluate.Streams = streams
	f := compare.Flags{Evaluate: evaluate, Output: flags.NewOutput(formats.Diff), Contexts: flags.NewContexts(), Variants: flags.Variants{Variants: 200, Seed: 1}}
	f.Policies.Paths, f.With = []string{filepath.Join(dir, "old.yaml")}, []string{filepath.Join(dir, "new.yaml")}
	f.Objects.Filenames = []string{filepath.Join(dir, "pods.yaml")}
	c := compare.NewCommand(evaluate, "kubectl mutate")
	c.SetContext(t.Context())
	o, err := f.ToOptions(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	o.Progress = wording.NewMeter(wording.MeterOptions{Out: &shown})
	o.Printer = onVariant{o.Printer}
	if code, err := o.Run(t.Context()); code != process.ExitChanges || err != nil {
		t.Fatal(code, err)
	}
	if want := "progress: 200 of 200 variants compared"; !strings.Contains(shown.String(), want) {
		t.Errorf("got %q, want %q", &shown, want)
	}
}
