package admissionpolicy_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/evaluation"
)

// FuzzEvaluate compiles any policy and evaluates it on a Pod and a ConfigMap: it
// must neither panic nor modify what it is given.
func FuzzEvaluate(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, d := range documents(f, archive.Files[0].Data) {
			text, err := yaml.Marshal(d.Object().Object)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	archive, err := txtar.ParseFile("testdata/benchmark/policy.txtar")
	if err != nil {
		f.Fatal(err)
	}
	var live []*unstructured.Unstructured
	for _, d := range documents(f, archive.Files[1].Data) {
		live = append(live, d.Object())
	}
	cluster, err := conformance.NewCluster(live, nil, engine.Request{Operation: engine.OperationAuto})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		policy := &unstructured.Unstructured{}
		if yaml.Unmarshal([]byte(text), &policy.Object) != nil || len(policy.Object) == 0 {
			return
		}
		before := []*unstructured.Unstructured{policy.DeepCopy(), live[0].DeepCopy()}
		program, _ := admissionpolicy.New().Compile(engine.Compilation{Documents: []engine.Document{engine.NewDocument(policy, "")}, Limits: engine.DefaultLimits()})
		e := evaluation.New([]engine.Program{program}, cluster.World, evaluation.Options{Workers: 1})
		err := e.Run(t.Context(), cluster.Objects, func(c *engine.Change) error {
			for _, s := range c.Steps {
				if p, ok := s.Err.(*engine.PanicError); ok { //nolint:errorlint // the engine does not wrap it
					t.Errorf("%v", p)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, []*unstructured.Unstructured{policy, live[0]}); diff != "" {
			t.Errorf("modified (-before +after):\n%s", diff)
		}
	})
}
