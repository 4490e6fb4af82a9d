package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kubectl-mutate/kubectl-mutate/internal/outputtest"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
)

// A run that is too large for code scanning is cut, and says so.
func TestBounds(t *testing.T) {
	var out strings.Builder
	p := outputtest.Printer(New(output.Options{}, NewSARIF(output.Options{Out: &out})))
	var summary evaluation.Summary
	changed, failed := engine.RuleRef{Policy: "p", Rule: "changes"}, engine.RuleRef{Policy: "p", Rule: "fails"}
	for i := range maxResults + 7 {
		c := engine.Change{
			Steps:  []engine.Step{{Rule: changed, Outcome: engine.Changed}, {Rule: failed, Outcome: engine.Failed, Err: errors.New("x")}},
			Fields: []engine.FieldChange{{Writer: new(changed), Path: fieldpath.MakePathOrDie("a"), Kind: engine.Added, To: "b"}},
		}
		c.Subject.Kind, c.Subject.Name = "ConfigMap", fmt.Sprint("c", i)
		summary.Add(&c)
		if err := p.Print(output.Evaluated{Change: &c}); err != nil {
			t.Fatal(err)
		}
	}
	if err := outputtest.End(p, summary); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Runs []struct {
			Results     []any
			Invocations []struct {
				ToolExecutionNotifications []struct{ Message struct{ Text string } }
			}
			Properties struct{ ResultsLeftOut int }
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if len(run.Results) != maxResults || run.Properties.ResultsLeftOut != 7 {
		t.Errorf("%d results, %d left out", len(run.Results), run.Properties.ResultsLeftOut)
	}
	notifications := run.Invocations[0].ToolExecutionNotifications
	if len(notifications) != maxNotifications+2 {
		t.Fatalf("%d notifications", len(notifications))
	}
	for i, want := range []string{"7 results are left out", "24007 more could not be evaluated"} {
		if got := notifications[maxNotifications+i].Message.Text; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLocations(t *testing.T) {
	tests := []struct{ origin, uri string }{
		{"policies/team labels.yaml:3", "policies/team%20labels.yaml"},
		{"/etc/p.yaml:3", "file:///etc/p.yaml"},
		{"C:/p.yaml:3", "file:///C:/p.yaml"},
		{"a:b/p\x1b\u202e.yaml:3", "./a:b/p%1B%E2%80%AE.yaml"},
		{"cluster", ""},
	}
	for _, tt := range tests {
		got, err := json.Marshal(physical(PlaceOf(tt.origin)))
		if want := `"uri":"` + tt.uri + `"`; err != nil || strings.Contains(string(got), want) != (tt.uri != "") {
			t.Errorf("%s: got %q, want %q", tt.origin, got, tt.uri)
		}
	}
}
