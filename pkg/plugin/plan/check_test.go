package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/plan"
)

// here is what a run is checked against.
type here struct {
	Cluster plan.Cluster
	Version string
	Now     time.Time
	MaxAge  time.Duration
}

func TestRunCheck(t *testing.T) {
	run := plan.Run{
		Cluster: plan.Cluster{UID: "u", Server: "https://a", Context: "prod"}, Version: "v1.2.3", Created: created,
	}
	from := here{Cluster: run.Cluster, Version: "v1.2.3", Now: created.Add(time.Hour), MaxAge: plan.DefaultMaxAge}
	for _, tt := range []struct {
		name string
		at   func(*here)
		want string
	}{
		{"here", func(*here) {}, ""},
		{"under another address", func(h *here) { h.Cluster.Server, h.Cluster.Context = "https://b", "test" }, ""},
		{
			"on another cluster at the same address", func(h *here) { h.Cluster.UID = "v" },
			"it was made on another cluster (context prod, https://a, kube-system u) than this one (context prod, https://a, kube-system v)",
		},
		{"by a user who may not read the UID", func(h *here) { h.Cluster.UID = "" }, ""},
		{
			"by such a user at another address", func(h *here) { h.Cluster = plan.Cluster{Server: "https://b"} },
			"it was made on another cluster (context prod, https://a, kube-system u) than this one (https://b)",
		},
		{"by a fix of the same release", func(h *here) { h.Version = "1.2.9" }, ""},
		{
			"by another release", func(h *here) { h.Version = "v1.3.0" },
			"it was made by version v1.2.3 of this program, and this is v1.3.0; make it again",
		},
		{
			"by a build of no release", func(h *here) { h.Version = "dev" },
			"it was made by version v1.2.3 of this program, and this is dev; make it again",
		},
		{
			"two days later", func(h *here) { h.Now = created.Add(48 * time.Hour) },
			"it is 48h0m0s old, which is more than 24h0m0s (--plan-max-age); make it again",
		},
		{"two days later, at any age", func(h *here) { h.Now, h.MaxAge = created.Add(48*time.Hour), 0 }, ""},
		{"by a clock that is a little behind", func(h *here) { h.Now = created.Add(-time.Minute) }, ""},
		{
			"before it was made", func(h *here) { h.Now = created.Add(-time.Hour) },
			"it was made 1h0m0s in the future; set the clock of this machine",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := from
			tt.at(&at)
			got := ""
			if err := run.Check(at.Cluster, at.Version, at.Now, at.MaxAge); err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func document(kind, name string, size int64) engine.Document {
	return engine.NewDocument(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": kind, "metadata": map[string]any{"name": name},
		"spec": map[string]any{"size": size},
	}}, "cluster")
}

func TestRunRestore(t *testing.T) {
	own := document("ClusterPolicy", "own", 1)
	own.Origin = "own.yaml:1"
	installed := []engine.Document{document("ClusterPolicy", "a", 1), document("PolicyException", "b", 1)}
	var run plan.Run
	var err error
	run.Documents, run.Digest, err = plan.DocumentsOf(append(installed[:2:2], own), func(d engine.Document) bool { return d.Origin == "cluster" })
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Validate(); err != nil {
		t.Fatal(err)
	}
	ready := document("ClusterPolicy", "a", 1)
	ready.Object().Object["status"] = map[string]any{"ready": true}
	ready.Object().SetResourceVersion("9")
	shadowed := document("ClusterPolicy", "own", 2)
	for _, tt := range []struct {
		name string
		now  []engine.Document
		want string
	}{
		{"as it was", installed, ""},
		{"in another order, with another status", []engine.Document{installed[1], ready}, ""},
		{"beside an installed one that the file's took the place of", append(installed[:2:2], shadowed), ""},
		{
			"changed",
			[]engine.Document{document("ClusterPolicy", "a", 2), installed[1]},
			"the policies in the cluster have changed since (changed: kyverno.io/ClusterPolicy a); make it again",
		},
		{
			"gone, and a new one",
			[]engine.Document{installed[0], document("PolicyException", "c", 1)},
			"the policies in the cluster have changed since (gone: kyverno.io/PolicyException b; new: kyverno.io/PolicyException c); make it again",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := run.Restore(tt.now)
			if tt.want != "" {
				if err == nil || err.Error() != tt.want {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, d := range got {
				names = append(names, d.Key.Name+" "+d.Origin)
			}
			if d := cmp.Diff([]string{"a cluster", "b cluster", "own own.yaml:1"}, names); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDocumentsOfRefusesSecrets(t *testing.T) {
	s := object(t, sections(t, "configmap.txtar")["secret.yaml"])
	_, _, err := plan.DocumentsOf([]engine.Document{engine.NewDocument(s, "s.yaml:1")}, func(engine.Document) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "a plan holds no Secrets") {
		t.Errorf("got %v", err)
	}
}
