package mutatingpolicy_test

import (
	"flag"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

var update = flag.Bool("update", false, "rewrite the results in testdata")

func TestCases(t *testing.T) {
	conformance.RunDirectory(t, mutatingpolicy.New(project), "testdata", *update, conformance.Options{})
}

// The cases in testdata/granted may call services and look images up.
func TestGrantedCases(t *testing.T) {
	conformance.RunDirectory(t, mutatingpolicy.New(project), "testdata/granted", *update, conformance.Options{NewCluster: newGrantedCluster})
}

// project stands for JMESPath: it knows names of fields alone.
func project(_ *engine.World, expression string, data any) (any, error) {
	fields, _ := data.(map[string]any)
	return fields[expression], nil
}
