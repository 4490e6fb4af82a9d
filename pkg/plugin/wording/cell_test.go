package wording_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func TestCell(t *testing.T) {
	for text, want := range map[string]string{"a b": "a b", " a\n\tb\v\fc": "a b c", "": "-", " \n": "-"} {
		if got := wording.Cell(text); got != want {
			t.Errorf("Cell(%q) = %q, want %q", text, got, want)
		}
	}
}
