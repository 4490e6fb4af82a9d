package kyverno

import (
	"fmt"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

// quiet is a Sink that counts nothing and wants no reasons.
type quiet struct{}

func (quiet) Wants(engine.Outcome) bool { return false }

func (quiet) NotMatched(engine.RuleList) {}
func (quiet) Step(engine.Step)           {}

// BenchmarkEvaluate evaluates one policy on one object that it changes.
func BenchmarkEvaluate(b *testing.B) {
	for _, name := range []string{"doc-mutate-01-image-pull-policy", "context-variable", "condition-beside-a-variable", "foreach-nested", "match-namespace-selector"} {
		b.Run(name, func(b *testing.B) {
			documents, live := readCase(b, name)
			program, err := New().Compile(engine.Compilation{Documents: documents})
			if err != nil {
				b.Fatal(err)
			}
			cluster, err := conformance.NewCluster(live, nil, engine.Request{})
			if err != nil {
				b.Fatal(err)
			}
			target := conformance.TargetOf(live[0])
			for b.Loop() {
				if _, err := program.Evaluate(b.Context(), target, cluster.World, quiet{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCompile compiles one policy.
func BenchmarkCompile(b *testing.B) {
	documents, _ := readCase(b, "foreach-nested")
	for b.Loop() {
		if _, err := New().Compile(engine.Compilation{Documents: documents}); err != nil {
			b.Fatal(err)
		}
	}
}

func readCase(b testing.TB, name string) (documents []engine.Document, live []*unstructured.Unstructured) {
	archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range archive.Files {
		switch f.Name {
		case "policy.kyverno.yaml":
			for _, u := range conformance.ReadObjects(b, string(f.Data)) {
				documents = append(documents, engine.NewDocument(u, ""))
			}
		case "live.yaml":
			live = conformance.ReadObjects(b, string(f.Data))
		}
	}
	return documents, live
}

// BenchmarkSizes compiles and evaluates ever more of one thing: what is doubled costs about
// twice as much.
func BenchmarkSizes(b *testing.B) {
	rule := func(name, kind string, patch fields) any {
		return fields{
			"name": name, "match": fields{"any": []any{fields{"resources": fields{"kinds": []any{kind}}}}},
			"mutate": fields{"patchStrategicMerge": patch},
		}
	}
	policy := func(name string, rules ...any) engine.Document {
		return engine.NewDocument(&unstructured.Unstructured{Object: fields{
			"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": fields{"name": name}, "spec": fields{"rules": rules},
		}}, "")
	}
	label := fields{"metadata": fields{"labels": fields{"l": "v"}}}
	for name, of := range map[string]func(n int) (documents []engine.Document, elements int){
		"rules": func(n int) ([]engine.Document, int) {
			rules := make([]any, n)
			for i := range rules {
				rules[i] = rule(fmt.Sprint("r", i), "Thing", label)
			}
			return []engine.Document{policy("p", rules...)}, 1
		},
		"kinds": func(n int) ([]engine.Document, int) {
			documents := make([]engine.Document, n)
			for i := range documents {
				documents[i] = policy(fmt.Sprint("p", i), rule("r", fmt.Sprint("Kind", i), label))
			}
			return documents, 1
		},
		"exceptions": func(n int) ([]engine.Document, int) {
			var documents []engine.Document
			for i := range n {
				name := fmt.Sprintf("p%05d", i)
				documents = append(documents, policy(name, rule("r", "Thing", label)), engine.NewDocument(&unstructured.Unstructured{Object: fields{
					"apiVersion": "kyverno.io/v2", "kind": "PolicyException", "metadata": fields{"name": name, "namespace": "default"},
					"spec": fields{
						"exceptions": []any{fields{"policyName": name, "ruleNames": []any{"r"}}, fields{"policyName": name + "*", "ruleNames": []any{"r*"}}},
						"match":      fields{"any": []any{fields{"resources": fields{"kinds": []any{"Thing"}}}}},
					},
				}}, ""))
			}
			return documents, 1
		},
		"elements": func(n int) ([]engine.Document, int) {
			return []engine.Document{policy("p", rule("r", "Thing", fields{"spec": fields{"l": []any{fields{"(name)": "*", "v": "y"}}}}))}, n
		},
	} {
		for _, n := range []int{1000, 2000, 4000, 8000} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				b.ReportAllocs()
				documents, length := of(n)
				target := conformance.TargetOf(&unstructured.Unstructured{Object: fields{
					"apiVersion": "example.com/v1", "kind": "Thing", "metadata": fields{"name": "a"}, "spec": fields{"l": elements(length, "e#")},
				}})
				for b.Loop() {
					program, err := New().Compile(engine.Compilation{Documents: documents})
					if err != nil {
						b.Fatal(err)
					}
					if _, err := program.Evaluate(b.Context(), target, conformance.NewWorld(), quiet{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
