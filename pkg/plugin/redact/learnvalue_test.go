package redact_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

type (
	list   = []any
	object = map[string]any
)

func TestLearnValue(t *testing.T) {
	m := &redact.Masker{}
	m.LearnValue(object{"a": list{"from a Secret"}})
	if got := m.Text("is from a Secret"); got != "is ***" {
		t.Errorf("got %q", got)
	}
}
