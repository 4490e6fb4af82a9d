package wording_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"deployment/web": "deployment/web", "app=web,tier=db": "app=web,tier=db",
		"": "''", "a b": "'a b'", "$(reboot)": "'$(reboot)'", "it's": `'it'\''s'`, "!db": "'!db'", "a\nb": "'a\nb'",
	} {
		if got := wording.ShellQuote(word); got != want {
			t.Errorf("Quote(%q) = %s, want %s", word, got, want)
		}
	}
}
