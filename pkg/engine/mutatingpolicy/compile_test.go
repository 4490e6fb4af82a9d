package mutatingpolicy_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/conformance"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/mutatingpolicy"
)

// Each case of testdata/compile holds policies, perhaps objects, an origin and an
// --only or --skip, and says what compiling gives: what is reported, the rules in
// order, what is worth listing, and what becomes of the objects, with reasons.
func TestCompile(t *testing.T) {
	conformance.Golden(t, "testdata/compile", *update, func(t *testing.T, sections map[string]string) string {
		return conformance.Compiled(t, mutatingpolicy.New(project), sections)
	})
}
