package admissionpolicy_test

import (
	"flag"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/admissionpolicy"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

func TestCases(t *testing.T) {
	conformance.RunDirectory(t, admissionpolicy.New(), "testdata", *update, conformance.Options{})
}
