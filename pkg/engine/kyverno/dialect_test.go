package kyverno

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

// The cases doc-mutate-* are the examples of Kyverno's page on mutate rules, in
// its order, doc-proposal-* those of its proposal of mutate-existing rules, and
// doc-legacy-* those of its page of version 1.0, whose indentation is restored;
// the others show what only this language can say.
func TestCases(t *testing.T) { runCases(t, "testdata", false) }

// The cases in testdata/annotate have the targets of mutate-existing rules
// annotated.
func TestAnnotatedCases(t *testing.T) { runCases(t, filepath.Join("testdata", "annotate"), true) }

func runCases(t *testing.T, dir string, annotate bool) {
	runCasesIn(t, dir, conformance.Options{NewCluster: newCluster, Annotate: annotate})
}

func runCasesIn(t *testing.T, dir string, o conformance.Options) {
	o.Cases = os.DirFS(dir)
	if *update {
		o.Update = func(name string, content []byte) error {
			return os.WriteFile(filepath.Join(dir, name), content, 0o644)
		}
	}
	conformance.Run(t, New(), o)
}
