package variables_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno/variables"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/policydecode"
)

// load reads the documents of testdata/values.txtar in the given order.
func load(t *testing.T, names ...string) *variables.Values {
	t.Helper()
	v := &variables.Values{}
	for _, name := range names {
		r := &policydecode.Report{Warn: func(e engine.CompileError) { t.Errorf("%s: %v", name, &e) }}
		v.Add(policydecode.Node{Report: r, Value: document(t, name).Object})
		if err := r.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return v
}

func document(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile("testdata/values.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range txtar.Parse(content).Files {
		if f.Name == name {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(f.Data, &u.Object); err != nil {
				t.Fatal(err)
			}
			return u
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

type object = map[string]any

func TestValuesPrecedence(t *testing.T) {
	for _, c := range []struct {
		policy, rule, object string
		later                bool // another document overrides the first
		want                 object
	}{
		{"other", "r", "web", false, object{"request": object{"mode": "global", "zone": "everywhere"}}},
		{"p", "other", "db", false, object{"request": object{"mode": "global", "zone": "everywhere"}}},
		{"p", "other", "web", false, object{"request": object{"mode": "object", "zone": "everywhere"}}},
		{"p", "r", "web", false, object{"request": object{"mode": "rule", "zone": "everywhere"}, "a.b": object{"c": []any{"x"}}}},
		{"other", "r", "web", true, object{"request": object{"mode": "later", "zone": "everywhere"}}},
	} {
		documents := []string{"all.yaml", "later.yaml"}
		if !c.later {
			documents = documents[:1]
		}
		if diff := cmp.Diff(c.want, load(t, documents...).Given(c.policy, c.rule, c.object)); diff != "" {
			t.Errorf("%s/%s on %s (-want +got):\n%s", c.policy, c.rule, c.object, diff)
		}
	}
}

func TestValuesNamespaces(t *testing.T) {
	got := variables.ValuesNamespaces(document(t, "namespaces.yaml"))
	var labels []string
	for _, u := range got {
		labels = append(labels, u.GetKind()+" "+u.GetName()+" "+u.GetLabels()["env"]+u.GetAnnotations()["note"])
	}
	want := []string{"Namespace a first", "Namespace b second", "Namespace c whole and annotated"}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
