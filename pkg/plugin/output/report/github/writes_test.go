package github_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/report/github"
)

// A rule has an error for what it could not change, and a warning for what was left
// to others; what went well is not annotated.
func TestAnnotationsOfWrites(t *testing.T) {
	var out strings.Builder
	o := output.Options{Out: &out, Writes: true}
	p := outputtest.Printer(report.New(o, github.New(o)))
	var errs []error
	for i, outcome := range []apply.Outcome{apply.Applied, apply.Failed, apply.Managed, apply.NotTried, apply.Unchanged} {
		r := apply.Result{Outcome: outcome, Rules: []engine.RuleRef{{Policy: "p", Rule: "r", Origin: "p.yaml:7"}}}
		r.Key.Kind, r.Key.Name = "ConfigMap", fmt.Sprint("c", i)
		if outcome == apply.Failed {
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
