package journal_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/journal"
)

func TestAllowedString(t *testing.T) {
	for _, tt := range []struct {
		allowed journal.Allowed
		want    string
	}{
		{journal.Allowed{}, ""},
		{journal.Allowed{TakeFrom: []string{"argocd", "flux"}}, "--take-from=argocd --take-from=flux"},
		{
			journal.Allowed{ForceConflicts: true, IncludeManaged: true, SkipRejected: true},
			"--force-conflicts --include-managed --skip-rejected",
		},
	} {
		if got := tt.allowed.String(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.allowed, got, tt.want)
		}
	}
}
