package kyverno

import (
	"flag"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/conformance"
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
