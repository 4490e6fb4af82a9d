package redact_test

import (
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

func TestEscapeWorkflowCommands(t *testing.T) {
	for text, want := range map[string]string{
		"::error ::x":           `\x3a:error ::x`,
		" \u00a0 ::add-mask::x": " \u00a0 " + `\x3a:add-mask::x`,
		"a\n  ::error::x\n":     "a\n  " + `\x3a:error::x` + "\n",
		"a ##[error]x":          `a #\x23[error]x`,
		"###[error]x":           `##\x23[error]x`,
		"::1 localhost":         "::1 localhost",
		":: a comment":          ":: a comment",
		"std::string::npos":     "std::string::npos",
		"a # b ## c [d]":        "a # b ## c [d]",
	} {
		if got := redact.EscapeLines(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := redact.EscapeLines(redact.EscapeLines(text)); got != want {
			t.Errorf("%q: escaped twice: got %q", text, got)
		}
	}
}

// Programs get what a runner would take for a command as it is, and nothing that acts
// on a terminal.
func TestEscape(t *testing.T) {
	for _, c := range []struct{ text, keep, want string }{
		{"::error::x ##[error]", "", "::error::x ##[error]"},
		{"a\tb\nc", "\n\t", "a\tb\nc"},
		{"a\tb\nc\r", "", `a\tb\nc\x0d`},
		{"\x1b[2J\u202e\u2028\ufffd\xff", "", `\x1b[2J\u202e\u2028` + "\ufffd" + `\xff`},
		{"Grüße", "", "Grüße"},
	} {
		if got := redact.Escape(c.text, c.keep); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestEscapeJSON(t *testing.T) {
	if got := string(redact.EscapeJSON([]byte("{\"a\": \"\u202e\U000e0001é\"}\n"))); got != "{\"a\": \"\\u202e\\udb40\\udc01é\"}\n" {
		t.Errorf("got %s", got)
	}
}

func TestEscapeLine(t *testing.T) {
	if got := redact.EscapeLine("a\n::error::b"); got != `a\n::error::b` {
		t.Errorf("got %q", got)
	}
}
