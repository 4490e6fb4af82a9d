package report_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// changes are of objects that the first rule changes most often.
func changes(rules int) []engine.Change {
	var out []engine.Change
	for i := range rules {
		c := engine.Change{After: &unstructured.Unstructured{}}
		c.Subject.Kind, c.Subject.Name = "ConfigMap", fmt.Sprint("c", i)
		for r := range rules - i {
			ref := engine.RuleRef{Policy: "p", Rule: fmt.Sprint("r", r)}
			c.Steps = append(c.Steps, engine.Step{Rule: ref, Outcome: engine.Changed})
			c.Fields = append(c.Fields, engine.FieldChange{
				Writer: &ref,
				Path:   fieldpath.MakePathOrDie(fmt.Sprint("f", r)), Kind: engine.Added, To: "x",
			})
		}
		out = append(out, c)
	}
	return out
}

func TestAnnotationsAreTenAtMost(t *testing.T) {
	for rules, last := range map[int]string{
		10: "::warning title=p/r9::would change 1 object: ConfigMap c0",
		11: "::warning title=kubectl mutate::2 more annotations are left out. 11 objects evaluated",
		40: "::warning title=kubectl mutate::31 more annotations are left out. 40 objects evaluated",
	} {
		lines := githubLines(t, changes(rules), nil)
		if len(lines) != 10 || !strings.HasPrefix(lines[9], last) {
			t.Errorf("%d rules: %d lines, the last %q, want %q", rules, len(lines), lines[len(lines)-1], last)
		}
		if want := fmt.Sprintf("::warning title=p/r0::would change %d objects: ConfigMap c0, ConfigMap c1, ConfigMap c2 and %d more", rules, rules-3); lines[0] != want {
			t.Errorf("got %q, want %q", lines[0], want)
		}
	}
}

func TestAnnotationsOfProblemsComeFirst(t *testing.T) {
	var problems []error
	for i := range 30 {
		problems = append(problems, fmt.Errorf("problem %d", i))
	}
	lines := githubLines(t, changes(3), problems)
	if len(lines) != 10 || !strings.HasPrefix(lines[0], "::error title=kubectl mutate::problem 0") || !strings.Contains(lines[9], "24 more annotations") {
		t.Errorf("got %s", strings.Join(lines, "\n"))
	}
}

func githubLines(t *testing.T, changes []engine.Change, problems []error) []string {
	t.Helper()
	var out strings.Builder
	p := outputtest.Printer(report.New(output.Options{}, report.NewGitHub(output.Options{Out: &out})))
	var summary evaluation.Summary
	var errs []error
	for _, c := range changes {
		summary.Add(&c)
		errs = append(errs, p.Print(output.Evaluated{Change: &c}))
	}
	for _, problem := range problems {
		errs = append(errs, p.Print(output.Problem{Err: problem}))
	}
	if err := errors.Join(append(errs, outputtest.End(p, summary))...); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// A rule has an error for what it could not change, and a warning for what was left
// to others; what went well is not annotated.
func TestAnnotationsOfWrites(t *testing.T) {
	var out strings.Builder
	o := output.Options{Out: &out, Writes: true}
	p := outputtest.Printer(report.New(o, report.NewGitHub(o)))
	var errs []error
	for i, outcome := range []write.Outcome{write.Applied, write.Failed, write.Managed, write.NotTried, write.Unchanged} {
		r := write.Result{Outcome: outcome, Rules: []engine.RuleRef{{Policy: "p", Rule: "r", Origin: "p.yaml:7"}}}
		r.Key.Kind, r.Key.Name = "ConfigMap", fmt.Sprint("c", i)
		if outcome == write.Failed {
			r.Err = errors.New("the server rejects it")
		}
		errs = append(errs, p.Print(output.Written{Result: &r}))
	}
	if err := errors.Join(append(errs, p.Print(output.Problem{Err: errors.New("interrupted")}), p.Close())...); err != nil {
		t.Fatal(err)
	}
	want := `::error title=kubectl mutate::interrupted
::error file=p.yaml,line=7,title=p/r::could not change 2 objects: ConfigMap c1, ConfigMap c3. The first failed: the server rejects it
::warning file=p.yaml,line=7,title=p/r::left alone 1 object: ConfigMap c2
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
