package gatekeeper_test

import (
	"flag"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/gatekeeper"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

// The cases doc-* are the examples of Gatekeeper's design document of mutation,
// in its order; the others show what only this language can say.
func TestCases(t *testing.T) {
	conformance.RunDirectory(t, gatekeeper.New(), "testdata", *update, conformance.Options{})
}
