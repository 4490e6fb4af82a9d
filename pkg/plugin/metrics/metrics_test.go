package metrics_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/apply"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/metrics"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

func deployment(namespace string) engine.ObjectKey {
	return engine.ObjectKey{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Version: "v1", Namespace: namespace, Name: "web"}
}

// example counts every outcome of interest at least once.
func example() *metrics.Run {
	team := engine.RuleRef{Dialect: "kyverno", Policy: "labels", Rule: "team"}
	odd := engine.RuleRef{Dialect: "kyverno", Policy: "shop/odd", Rule: "say \"hi\"\\\nand \xff\x1b[2J"}
	node := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "Node"}, Name: "worker-1"}
	there := &unstructured.Unstructured{}
	step := func(r engine.RuleRef, k engine.ObjectKey, o engine.Outcome) engine.Step {
		return engine.Step{Rule: r, Outcome: o}
	}
	r := metrics.New("apply-existing", "v1.2.3")
	for _, ns := range []string{"shop", "team", "shop"} {
		r.Evaluated(&engine.Change{
			Subject: deployment(ns), Before: there, Fields: make([]engine.FieldChange, 2),
			Steps: []engine.Step{step(team, deployment(ns), engine.Changed), step(team, deployment(ns), engine.Changed), step(odd, deployment(ns), engine.Skipped)},
		})
	}
	r.Evaluated(&engine.Change{Subject: node, Before: there, Steps: []engine.Step{
		step(team, node, engine.NotMatched), step(odd, node, engine.Failed),
	}})
	// A target that does not exist is no object, but a failure of the rule.
	r.Evaluated(&engine.Change{Subject: deployment("gone"), Steps: []engine.Step{step(team, deployment("gone"), engine.Failed)}})
	r.Written(&apply.Result{Key: deployment("shop"), Outcome: apply.Applied, Status: &apply.Result{Key: deployment("shop"), Outcome: apply.Failed}}, []engine.RuleRef{team, team})
	r.Written(&apply.Result{Key: deployment("team"), Outcome: apply.Conflicted}, []engine.RuleRef{team, odd})
	return r
}

func TestWriteTo(t *testing.T) {
	var got, again strings.Builder
	for _, b := range []*strings.Builder{&got, &again} {
		if n, err := example().WriteTo(b); err != nil || int(n) != b.Len() {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	if diff := cmp.Diff(got.String(), again.String()); diff != "" {
		t.Errorf("equal runs differ:\n%s", diff)
	}
	golden := filepath.Join("testdata", "example.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The counts of the runs on several clusters are one file, and name the clusters.
func TestCountsOfClusters(t *testing.T) {
	r := metrics.New("apply-existing", "v1")
	key := engine.ObjectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "shop", Name: "a"}
	rule := engine.RuleRef{Dialect: "kyverno", Policy: "p", Rule: "r"}
	for _, cluster := range []string{"eu", "us", "us"} {
		r.On(cluster).Evaluated(&engine.Change{Subject: key, Before: &unstructured.Unstructured{}, Steps: []engine.Step{{Rule: rule, Outcome: engine.Changed}}})
		r.On(cluster).Written(&apply.Result{Key: key, Outcome: apply.Applied}, []engine.RuleRef{rule})
	}
	var out strings.Builder
	if _, err := r.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`kubectl_mutate_objects{cluster="eu",kind="ConfigMap",namespace="shop",result="unchanged"} 1.0`,
		`kubectl_mutate_objects{cluster="us",kind="ConfigMap",namespace="shop",result="unchanged"} 2.0`,
		`kubectl_mutate_rule_objects{dialect="kyverno",policy="p",rule="r",cluster="us",kind="ConfigMap",namespace="shop",outcome="changed"} 2.0`,
		`kubectl_mutate_writes{cluster="us",kind="ConfigMap",namespace="shop",outcome="applied"} 2.0`,
		`kubectl_mutate_rule_writes{dialect="kyverno",policy="p",rule="r",cluster="eu",kind="ConfigMap",namespace="shop",outcome="applied"} 1.0`,
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("there is no %s in:\n%s", line, &out)
		}
	}
	if none := (*metrics.Run)(nil).On("eu"); none != nil {
		t.Errorf("what counts nothing counts %v", none)
	}
}

// Whatever the names are, the metrics are well formed, and act on no terminal that shows them.
func TestMetricsOfHostileNames(t *testing.T) {
	for _, text := range hostile.Texts() {
		key := engine.ObjectKey{GroupKind: schema.GroupKind{Group: text.Text, Kind: text.Text}, Version: text.Text, Namespace: text.Text, Name: text.Text}
		rule := engine.RuleRef{Dialect: "kyverno", Policy: text.Text, Rule: text.Text}
		r := metrics.New("apply-existing", text.Text)
		r.Evaluated(&engine.Change{Subject: key, Before: &unstructured.Unstructured{}, Steps: []engine.Step{{Rule: rule, Outcome: engine.Failed}}})
		r.Written(&apply.Result{Key: key, Outcome: apply.Failed}, []engine.RuleRef{rule})
		var out strings.Builder
		_, err := r.WriteTo(&out)
		if err := errors.Join(err, hostile.Terminal(out.String()), hostile.Lines(out.String(), 19)); err != nil {
			t.Errorf("%s %.80q: %v", text.Class, text.Text, err)
		}
	}
}
