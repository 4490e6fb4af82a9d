package formats_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
)

func newPrinter(t *testing.T, format string, o output.Options) output.Printer {
	t.Helper()
	p, err := formats.NewPreview(format, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTee(t *testing.T) {
	var names, table bytes.Buffer
	p := output.Tee(newPrinter(t, formats.Name, output.Options{Out: &names}), newPrinter(t, formats.Table, output.Options{Out: &table}))
	if err := errors.Join(p.Print(outputtest.Evaluated(podChange("web", "x"))), outputtest.End(p, evaluation.Summary{Objects: 1})); err != nil {
		t.Fatal(err)
	}
	if names.String() != "pod/web\n" || !strings.Contains(table.String(), "pod/web") || !strings.Contains(table.String(), "1 object evaluated") {
		t.Errorf("got %q and %q", names.String(), table.String())
	}
}

// broken is a printer that can do nothing, and counts how often it is closed.
type broken struct{ closed int }

var errBroken = errors.New("broken")

func (*broken) Print(output.Event) error { return errBroken }
func (b *broken) Close() error           { b.closed++; return errBroken }

func TestTeeClose(t *testing.T) {
	var out bytes.Buffer
	var first, last broken
	p := output.Tee(newPrinter(t, formats.Summary, output.Options{Out: &out}), &first, &last)
	if err := p.Print(output.Summary{Summary: evaluation.Summary{Objects: 1}}); !errors.Is(err, errBroken) || !strings.Contains(out.String(), "1 object evaluated") {
		t.Errorf("got %v and %q", err, out.String())
	}
	if err := p.Close(); !errors.Is(err, errBroken) || first.closed != 1 || last.closed != 1 {
		t.Errorf("got %v, closed %d and %d", err, first.closed, last.closed)
	}
}

// A run that breaks off has shown what it saw.
func TestFlush(t *testing.T) {
	for format, want := range map[string]string{
		formats.Diff:    "~ Pod shop/web  (4 fields)\n",
		formats.Summary: "~ Pod shop/web  4 fields",
		formats.Table:   "NAMESPACE   NAME",
		"custom-columns=NAME:.object.name,K:.object.kind": "NAME   K\nweb    Pod\n",
	} {
		var out bytes.Buffer
		p := output.Tee(newPrinter(t, formats.Name, output.Options{Out: &bytes.Buffer{}}), newPrinter(t, format, output.Options{Out: &out}))
		if err := p.Print(outputtest.Evaluated(podChange("web", "x"))); err != nil {
			t.Fatal(err)
		}
		if out.Len() > 0 {
			t.Fatalf("-o %s: shown at once: %q", format, out.String())
		}
		if err := output.Flush(p); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("-o %s: got %v and %q", format, err, out.String())
		}
	}
}

// Rows are not held until the end of a run, however many there are.
func TestRowsAreBounded(t *testing.T) {
	for _, format := range []string{formats.Table, "custom-columns=NAME:.object.name,K:.object.kind"} {
		var out bytes.Buffer
		p := newPrinter(t, format, output.Options{Out: &out})
		c := podChange("web", "x")
		for range 1001 {
			if err := p.Print(outputtest.Evaluated(c)); err != nil {
				t.Fatal(err)
			}
		}
		if out.Len() == 0 {
			t.Errorf("-o %s: a thousand rows are held back", format)
		}
	}
}

// Reports are whole even if what the run prints fails at its end.
func TestReportsBesideAFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "comment.md")
	r, err := formats.OpenReports([]string{"markdown=" + file}, formats.ReportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := r.Beside(newPrinter(t, "go-template={{index .changes 9}}", output.Options{Out: &bytes.Buffer{}}))
	if err := p.Print(outputtest.Evaluated(podChange("web", "x"))); err != nil {
		t.Fatal(err)
	}
	if err := outputtest.End(p, evaluation.Summary{Objects: 1, Changed: 1}); err == nil || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("the template has no failure: %v", err)
	}
	if got := text(t, file); !strings.Contains(got, "1 of 1 objects would change") || !strings.Contains(got, "Pod shop/web") {
		t.Errorf("got %s", got)
	}
}

// Many different changes are shown in parts, and the summary says so.
func TestDiffIsBounded(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(t, formats.Diff, output.Options{Out: &out, ShowSecrets: true})
	for i := range 5000 {
		if err := p.Print(outputtest.Evaluated(podChange("web", strconv.Itoa(i)))); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() == 0 {
		t.Error("all is held back")
	}
	if err := outputtest.End(p, evaluation.Summary{Objects: 5000}); err != nil || !strings.Contains(out.String(), "grouped in several parts") {
		t.Errorf("got %v; the summary does not say that there are parts", err)
	}
}
