package mutatingpolicy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// A case is an archive with a section "pod", the expression as it is written,
// and a section for each derivation.
func TestRewrite(t *testing.T) {
	files, err := filepath.Glob("testdata/autogen/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sections := map[string]string{}
		for _, f := range archive.Files {
			sections[f.Name] = strings.TrimSpace(string(f.Data))
		}
		for _, d := range derivations(nil) {
			want, ok := sections[d.Name]
			if !ok {
				t.Errorf("%s: no section %s", file, d.Name)
			}
			if diff := cmp.Diff(want, strings.TrimSpace(d.Rewrite(sections["pod"]))); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", file, d.Name, diff)
			}
		}
	}
}

func TestAutogenDerivations(t *testing.T) {
	cronJobs := resources{Group: "batch", Version: "v1", Names: []string{"cronjobs"}}
	jobs := resources{Group: "batch", Version: "v1", Names: []string{"jobs"}}
	apps := func(names ...string) resources {
		return resources{Group: "apps", Version: "v1", Names: names}
	}
	for _, c := range []struct {
		name   string
		wanted []string
		want   map[string][]resources
	}{
		{"all where nothing is said", nil, map[string][]resources{
			"cronjobs": {cronJobs}, "defaults": {apps("daemonsets", "deployments", "replicasets", "statefulsets"), jobs},
		}},
		{"none for an empty list", []string{}, map[string][]resources{}},
		{"one", []string{"deployments"}, map[string][]resources{"defaults": {apps("deployments")}}},
		{"two groups", []string{"jobs", "statefulsets"}, map[string][]resources{"defaults": {apps("statefulsets"), jobs}}},
		{"cron jobs alone", []string{"cronjobs"}, map[string][]resources{"cronjobs": {cronJobs}}},
		{"one that has no Pod template", []string{"services"}, map[string][]resources{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string][]resources{}
			for _, d := range derivations(c.wanted) {
				got[d.Name] = d.Rules
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKnown(t *testing.T) {
	if !knownController("deployments") || knownController("replicationcontrollers") {
		t.Error("deployments are known, replicationcontrollers are not")
	}
}
