package wording_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/internal/hostile"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/wording"
)

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"deployment/web": "deployment/web", "app=web,tier=db": "app=web,tier=db", "=ls": "'=ls'",
		"": "''", "a b": "'a b'", "$(reboot)": "'$(reboot)'", "it's": `'it'\''s'`, "!db": "'!db'", "Grüße": "'Grüße'",
		"a\n!%b": `"$(printf 'a\012\041\045b')"`, "\x1b[2J": `"$(printf '\033\1332J')"`, "##[x": `"$(printf '\043\043\133x')"`,
	} {
		if got := wording.ShellQuote(word); got != want {
			t.Errorf("Quote(%q) = %s, want %s", word, got, want)
		}
	}
}

// Whatever a word is, a shell gets it as it is when it is pasted from where it was shown, and
// does nothing else.
func TestQuotedWordsArePasted(t *testing.T) {
	var lines, want strings.Builder
	for _, text := range hostile.Texts() {
		if strings.Contains(text.Text, "\x00") {
			continue // which no word of a command holds
		}
		quoted := wording.ShellQuote(text.Text)
		if shown := redact.EscapeLine(quoted); shown != quoted {
			t.Errorf("%q is shown as %s", quoted, shown)
		}
		fmt.Fprintf(&lines, "show %s x%s\n", quoted, wording.ShellQuote(text.Text+"x"))
		want.WriteString(hostile.Shown(strings.TrimRight(text.Text, "\n"), "x"+text.Text+"x"))
	}
	for shell, got := range hostile.Paste(t, lines.String()) {
		if got != want.String() {
			a, b := strings.Split(want.String(), "\n"), strings.Split(got, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Fatalf("%s got %.80q, want %.80q", shell, b[i], a[i])
				}
			}
			t.Errorf("%s got %d lines, want %d", shell, len(b), len(a))
		}
	}
}
