package kyverno_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/kyverno"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

// The cases doc-mutate-* are the examples of Kyverno's page on mutate rules, in
// its order, and doc-proposal-* those of its proposal of mutate-existing rules;
// the others show what only this language can say.
func TestCases(t *testing.T) {
	o := conformance.Options{Cases: os.DirFS("testdata"), NewCluster: newCluster}
	if *update {
		o.Update = func(name string, content []byte) error {
			return os.WriteFile(filepath.Join("testdata", name), content, 0o644)
		}
	}
	conformance.Run(t, kyverno.New(), o)
}
