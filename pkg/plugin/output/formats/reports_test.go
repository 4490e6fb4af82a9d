package formats_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/diff"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

func key(name string) engine.ObjectKey {
	k := engine.ObjectKey{Namespace: "shop", Name: name}
	k.Kind = "ConfigMap"
	return k
}

var ruleR = engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: "r"}

func written(name string, outcome write.Outcome) output.Event {
	return output.Written{Result: &write.Result{Key: key(name), Outcome: outcome, Rules: []engine.RuleRef{ruleR}}}
}

// open opens the reports of a run that writes.
func open(t *testing.T, o formats.ReportOptions, named ...string) *formats.Reports {
	t.Helper()
	o.Writes = true
	r, err := formats.OpenReports(named, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Formats for the state of objects, and what cannot be written, are refused before
// the run begins.
func TestOpenReportsRefuses(t *testing.T) {
	dir := t.TempDir()
	for named, want := range map[string]string{
		"sarif=x":                  "sarif says how objects are, as preview finds them, and not what was written: use one of junit, markdown, github",
		"html=x":                   "html says how objects are",
		"policyreport=x":           "use one of junit, markdown, github",
		"openreports=x":            "use one of junit, markdown, github",
		"xml=x":                    `unknown format "xml": use one of junit, markdown, github`,
		"junit":                    "use FORMAT=FILE",
		"junit=" + dir:             "is a directory",
		"junit=" + dir + "/no/way": "no such file or directory",
	} {
		if _, err := formats.OpenReports([]string{named}, formats.ReportOptions{Options: output.Options{Writes: true}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--report %s: got %v, want %q", named, err, want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("created: %v", left)
	}
}

// The reports have what was written, why the run broke off, and what it did not come to.
func TestReportsOfAnUnfinishedRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "junit.xml")
	r := open(t, formats.ReportOptions{}, "junit="+file)
	for _, e := range []output.Event{written("a", write.Applied), written("b", write.NotTried), output.Problem{Err: errors.New("interrupted")}} {
		if err := r.Print(e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the report is there before it is complete")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`tests="2" failures="0" errors="1"`, `"r: ConfigMap shop/a"`, `<error type="not-tried"`, `message="interrupted"`} {
		if got := text(t, file); !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// A rule that failed on an object is in the report with what was written to the object,
// also where nothing was.
func TestReportsOfFailedEvaluations(t *testing.T) {
	file := filepath.Join(t.TempDir(), "junit.xml")
	r := open(t, formats.ReportOptions{}, "junit="+file)
	bad := engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: "bad"}
	evaluated := func(name string, rule engine.RuleRef, o engine.Outcome, err error) output.Event {
		return output.Evaluated{Change: &engine.Change{Subject: key(name), Steps: []engine.Step{{Rule: rule, Outcome: o, Err: err}}}}
	}
	noVariable := errors.New("no such variable")
	for _, e := range []output.Event{
		evaluated("written", bad, engine.Failed, noVariable), evaluated("part", ruleR, engine.Failed, noVariable),
		evaluated("alone", bad, engine.Failed, noVariable), evaluated("fine", ruleR, engine.Unchanged, nil),
		output.Summary{},
		written("written", write.Applied), written("part", write.Applied),
	} {
		if err := r.Print(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got := text(t, file)
	for _, want := range []string{
		`tests="4" failures="0" errors="3"`, `"r: ConfigMap shop/written"`, `"bad: ConfigMap shop/written"`, `"bad: ConfigMap shop/alone"`,
		`message="failed: no such variable">note: serverside-applied</error>`, // of the part
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// newWrites returns the printer of a run that writes.
func newWrites(format string, o output.Options, r *formats.Reports, errOut io.Writer) (output.Printer, error) {
	writes, err := formats.NewResults(format, o, r)
	if err != nil {
		return nil, err
	}
	return formats.NewWrites(writes, format, o, r, errOut)
}

// A report on standard output is all that stands there.
func TestReportsInstead(t *testing.T) {
	var out, errOut bytes.Buffer
	o := output.Options{Out: &out, DryRun: "server", Writes: true}
	r := open(t, formats.ReportOptions{Options: o}, "markdown=-")
	shown, err := newWrites(formats.Summary, o, r, &errOut)
	if err != nil {
		t.Fatal(err)
	}
	p := output.Tee(shown, r)
	c := engine.Change{Subject: key("a"), Fields: make([]engine.FieldChange, 1)}
	if err := errors.Join(p.Print(output.Evaluated{Change: &c}), p.Print(output.Summary{}), p.Print(written("a", write.Planned)), p.Close()); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !r.Instead() || !strings.HasPrefix(got, report.MarkdownWritesMarker) || !strings.Contains(got, "# Mutation policies: 1 of 1 object as wanted (server dry run)\n") {
		t.Errorf("shown:\n%s", got)
	}
	if !strings.Contains(errOut.String(), "shop/a") {
		t.Errorf("what would change is not shown: %q", errOut.String())
	}
}

// That a report cannot be written is an error at the end, and does not end the run.
func TestReportsUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "reports")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := open(t, formats.ReportOptions{}, "junit="+filepath.Join(dir, "junit.xml"))
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := r.Print(written("a", write.Applied)); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "junit.xml") {
		t.Errorf("got %v", err)
	}
}

// A run that breaks off leaves no report, and no half of one.
func TestReportsDiscard(t *testing.T) {
	for format := range strings.SplitSeq(formats.ReportNames(output.Options{}), ", ") {
		dir := t.TempDir()
		reports, err := formats.OpenReports([]string{format + "=" + filepath.Join(dir, "report")}, formats.ReportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 { // more than a buffer holds
			err = errors.Join(err, reports.Print(output.Evaluated{Change: leveled("info")}))
		}
		if err := errors.Join(err, reports.Discard()); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: left behind: %v", format, left)
		}
	}
}

// leveled is a change of a ConfigMap.
func leveled(level string) *engine.Change {
	state := func(level string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "shop"}, "data": map[string]any{"level": level},
		}
	}
	c := &engine.Change{Before: object(state("debug")), After: object(state(level)), Steps: []engine.Step{{Rule: ruleR, Outcome: engine.Changed}}}
	c.Subject = engine.KeyOf(c.After)
	c.Fields = diff.Compare(c.Before.Object, c.After.Object, diff.Type{})
	return c
}

// A run that breaks off, and a watch that writes, have no summary: what they saw is shown by Flush, once.
func TestFlush(t *testing.T) {
	for format, want := range map[string]string{
		formats.Diff:    "+  level: info",
		formats.Summary: "~ ConfigMap shop/web  1 field",
		formats.Table:   "NAMESPACE   NAME",
		"custom-columns=NAME:.object.name,K:.object.kind": "NAME   K\nweb    ConfigMap\n",
	} {
		for _, writes := range []bool{false, true} {
			var out bytes.Buffer
			o := output.Options{Out: &out, Writes: writes}
			p, err := formats.New(format, o)
			if writes {
				p, err = newWrites(format, o, &formats.Reports{}, &out)
			}
			if unknown := (*formats.UnknownFormatError)(nil); errors.As(err, &unknown) {
				continue // a write has no table
			}
			err = errors.Join(err, p.Print(output.Evaluated{Change: leveled("info")}))
			if out.Len() > 0 {
				t.Errorf("-o %s: shown at once: %q", format, &out)
			}
			for range 2 {
				if err = errors.Join(err, output.Flush(p)); err != nil || strings.Count(out.String(), want) != 1 {
					t.Errorf("-o %s: got %v and %q", format, err, &out)
				}
			}
		}
	}
}

// Many different changes are shown in parts, and the summary says so.
func TestDiffIsBounded(t *testing.T) {
	var out bytes.Buffer
	p, err := formats.New(formats.Diff, output.Options{Out: &out})
	for i := range 5000 {
		err = errors.Join(err, p.Print(output.Evaluated{Change: leveled(fmt.Sprint(i))}))
	}
	if out.Len() == 0 {
		t.Error("all is held back")
	}
	if err := errors.Join(err, outputtest.End(p, evaluation.Summary{Objects: 5000})); err != nil || !strings.Contains(out.String(), "grouped in several parts") {
		t.Errorf("got %v; the summary does not say that there are parts", err)
	}
}
