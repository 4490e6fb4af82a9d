package formats

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

func key(name string) engine.ObjectKey {
	k := engine.ObjectKey{Namespace: "shop", Name: name}
	k.Kind = "ConfigMap"
	return k
}

var ruleR = engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: "r"}

// shown counts what is printed beside the reports.
type shown struct{ printed, closed int }

func (s *shown) Print(apply.Result) error { s.printed++; return nil }
func (s *shown) Close() error             { s.closed++; return nil }

func open(t *testing.T, o Options, named ...string) *Results {
	t.Helper()
	r, err := OpenResults(named, o)
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
func TestOpenResultsRefuses(t *testing.T) {
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
		if _, err := OpenResults([]string{named}, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--report %s: got %v, want %q", named, err, want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("created: %v", left)
	}
}

// The reports have what is shown, why the run broke off, and what it did not come to.
func TestResultsOfABrokenOffRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "junit.xml")
	r := open(t, Options{}, "junit="+file)
	var s shown
	p := r.Results(&s)
	if err := errors.Join(p.Print(apply.Result{Key: key("a"), Outcome: apply.Applied, Rules: []engine.RuleRef{ruleR}}), p.Close()); err != nil {
		t.Fatal(err)
	}
	r.Add(&apply.Result{Key: key("b"), Outcome: apply.NotTried, Rules: []engine.RuleRef{ruleR}})
	r.Trouble(errors.New("interrupted"))
	if _, err := os.Stat(file); err == nil {
		t.Error("the report is there before it is complete")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if s != (shown{printed: 1, closed: 1}) {
		t.Errorf("shown: %+v", s)
	}
	for _, want := range []string{`tests="2" failures="0" errors="1"`, `"r: ConfigMap shop/a"`, `<error type="not-tried"`, `message="interrupted"`} {
		if got := text(t, file); !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// What a rule failed to say about an object is told with what came of the object,
// also where nothing came of it.
func TestFailedEvaluationsAreInTheReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "junit.xml")
	r := open(t, Options{}, "junit="+file)
	preview, err := output.New(output.Name, output.Options{Out: &bytes.Buffer{}})
	if err != nil {
		t.Fatal(err)
	}
	bad := engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: "bad"}
	failed := func(name string, rule engine.RuleRef) engine.Change {
		return engine.Change{Subject: key(name), Steps: []engine.Step{{Rule: rule, Outcome: engine.Failed, Err: errors.New("no such variable")}}}
	}
	p := r.BesidePreview(preview)
	fine := engine.Change{Subject: key("fine"), Steps: []engine.Step{{Rule: ruleR, Outcome: engine.Unchanged}}}
	if err := errors.Join(p.Print(failed("written", bad)), p.Print(failed("part", ruleR)), p.Print(failed("alone", bad)), p.Print(fine)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"written", "part"} {
		r.Add(&apply.Result{Key: key(name), Outcome: apply.Applied, Rules: []engine.RuleRef{ruleR}})
	}
	if err := errors.Join(p.Close(engine.Summary{}), r.Close()); err != nil {
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

// A report on standard output is all that stands there.
func TestAReportInsteadOfResults(t *testing.T) {
	var out bytes.Buffer
	r := open(t, Options{Render: output.Options{Out: &out, DryRun: "server"}}, "markdown=-")
	var s shown
	p := r.Results(&s)
	if err := errors.Join(p.Print(apply.Result{Key: key("a"), Outcome: apply.Planned, Rules: []engine.RuleRef{ruleR}}), p.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	if s != (shown{}) || !r.Instead() || !strings.Contains(out.String(), "# Mutation policies: 1 of 1 object as wanted (server dry run)\n") {
		t.Errorf("shown %+v and\n%s", s, &out)
	}
}

// A report that cannot be written is told at the end, and does not end the run.
func TestAReportThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "reports")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := open(t, Options{}, "junit="+filepath.Join(dir, "junit.xml"))
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	p := r.Results(&shown{})
	if err := p.Print(apply.Result{Key: key("a"), Outcome: apply.Applied}); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "junit.xml") {
		t.Errorf("got %v", err)
	}
}

// Without reports nothing stands between a run and what it prints.
func TestNoReports(t *testing.T) {
	r := open(t, Options{})
	s := &shown{}
	if r.Results(s) != output.ResultPrinter(s) {
		t.Error("the printer is another one")
	}
	r.Add(&apply.Result{})
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
