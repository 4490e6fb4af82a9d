package kyverno

import (
	"flag"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

// The cases doc-mutate-* are the examples of Kyverno's page on mutate rules, in
// its order, doc-proposal-* those of its proposal of mutate-existing rules, and
// doc-legacy-* those of its page of version 1.0, whose indentation is restored;
// the others show what only this language can say.
func TestCases(t *testing.T) {
	conformance.RunDirectory(t, New(), "testdata", *update, conformance.Options{})
}

// The cases in testdata/annotate have the targets of mutate-existing rules
// annotated.
func TestAnnotatedCases(t *testing.T) {
	conformance.RunDirectory(t, New(), "testdata/annotate", *update, conformance.Options{Annotate: true})
}

// Each case of testdata/compile holds policies, perhaps objects and an --only or
// --skip, and says what compiling gives: the rules in order, what is worth
// listing, what is reported, and why rules do not match the objects.
func TestCompile(t *testing.T) {
	conformance.Golden(t, "testdata/compile", *update, func(t *testing.T, sections map[string]string) string {
		return conformance.Compiled(t, New(), sections)
	})
}

func FuzzCompile(f *testing.F) {
	conformance.FuzzCompile(f, New(), schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"}, "testdata")
}

// readCase reads the policies and the objects of a case in testdata.
func readCase(t testing.TB, name string) (documents []engine.Document, live []*unstructured.Unstructured) {
	archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		switch f.Name {
		case "policy.kyverno.yaml":
			for _, u := range conformance.ReadObjects(t, string(f.Data)) {
				documents = append(documents, engine.NewDocument(u, ""))
			}
		case "live.yaml":
			live = conformance.ReadObjects(t, string(f.Data))
		}
	}
	return documents, live
}
