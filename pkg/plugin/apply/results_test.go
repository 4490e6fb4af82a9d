package apply

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/output/formats"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/write"
)

// messages keeps what the events say that are created.
type messages []string

func (m *messages) Create(_ context.Context, u *unstructured.Unstructured) error {
	text, _, err := unstructured.NestedString(u.Object, "message")
	*m = append(*m, text)
	return err
}

// A write leaves events of the rules that another object triggered, each once, and
// numbers of all rules that changed the object.
func TestApplyEventsAndMetrics(t *testing.T) {
	web := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: "web"}
	trigger := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Secret"}, Version: "v1", Namespace: "shop", Name: "s"}
	step := func(rule string, by *engine.ObjectKey, o engine.Outcome) engine.Step {
		return engine.Step{Rule: engine.RuleRef{Policy: "p", Rule: rule}, TriggeredBy: by, Outcome: o}
	}
	change := &engine.Change{Subject: web, Steps: []engine.Step{
		step("own", nil, engine.Changed), step("share", &trigger, engine.Changed),
		step("share", &trigger, engine.Changed), step("other", &trigger, engine.Unchanged),
	}}
	written := write.NewTask(nil, change)
	var events messages
	recorder := &write.EventRecorder{Create: events.Create, Now: time.Now, Warn: func(err error) { t.Error(err) }}
	o := &Options{}
	o.Metrics.Run = metrics.New("apply-existing", "v1")
	result := write.Result{Key: web, Outcome: write.Failed, Status: &write.Result{Key: web, Outcome: write.Applied}}
	recorder.Wrote(t.Context(), written, &result)
	o.count(written, &result)
	if diff := cmp.Diff(messages{"policy p/share applied"}, events); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
	var text strings.Builder
	if _, err := o.Metrics.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`policy="p",rule="own",kind="ConfigMap",namespace="shop",outcome="applied"} 1`,
		`policy="p",rule="share",kind="ConfigMap",namespace="shop",outcome="applied"} 1`,
		`writes{kind="ConfigMap",namespace="shop",outcome="applied"} 1`,
		`writes{kind="ConfigMap",namespace="shop",outcome="failed"} 1`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in\n%s", want, &text)
		}
	}
	without := &Options{} // they were not asked for
	without.count(written, &result)
}

// deaf shows nothing, as a pipe that is closed.
type deaf struct{}

var errDeaf = errors.New("broken pipe")

func (deaf) Print(output.Event) error { return errDeaf }
func (deaf) Close() error             { return errDeaf }

// What a run found and wrote is in its reports even if it cannot be shown.
func TestReportsAreWholeIfNothingCanBeShown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.md")
	reports, err := formats.OpenReports([]string{"markdown=" + file}, formats.ReportOptions{Options: output.Options{Writes: true}})
	if err != nil {
		t.Fatal(err)
	}
	p := Printers{Shown: deaf{}, Reports: reports}
	web := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Version: "v1", Namespace: "shop", Name: "web"}
	left := web
	left.Name = "left"
	for what, err := range map[string]error{
		"the summary": p.Print(output.Summary{Summary: evaluation.Summary{Objects: 7}}),
		"a write":     p.written(&write.Result{Key: web, Outcome: write.Applied}),
	} {
		if !errors.Is(err, errDeaf) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if err := errors.Join(reports.Print(output.Written{Result: &write.Result{Key: left, Outcome: write.NotTried}}), reports.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "shop/web") || !strings.Contains(string(text), "shop/left") {
		t.Errorf("%v in the report\n%s", err, text)
	}
}
