package redact_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

func TestWriter(t *testing.T) {
	for text, want := range map[string]string{
		"error: a\nNext: b\n  c\n\nwarning: d\n": "error: a\n  Next: b\n  c\n\n  warning: d\n",
		"note: a\nNext: b\n":                     "note: a\n  Next: b\n",
		"warning: a\rb\n":                        "warning: a\\x0db\n",
		"NAME\na\nb\n":                           "NAME\na\nb\n",
		"a\n\x1b[2J\n::error::x\n":               "a\n\\x1b[2J\n\\x3a:error::x\n",
	} {
		var out strings.Builder
		if _, err := io.WriteString(redact.NewWriter(&out), text); err != nil || out.String() != want {
			t.Errorf("%q: got %q, %v; want %q", text, out.String(), err, want)
		}
	}
	r, w := io.Pipe()
	r.CloseWithError(errors.New("no reader"))
	if n, err := io.WriteString(redact.NewWriter(w), "a"); n != 0 || err == nil {
		t.Errorf("a broken pipe: %d, %v", n, err)
	}
}
