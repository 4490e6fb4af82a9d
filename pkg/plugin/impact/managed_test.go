package impact_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/impact"
)

// An object that the server does not hand out is told like any other.
func TestManagedOfNoObject(t *testing.T) {
	if got := impact.Workload(nil); got != "" {
		t.Errorf("got %q", got)
	}
	if got := impact.Managed(nil); got != nil {
		t.Errorf("got %v", got)
	}
}
