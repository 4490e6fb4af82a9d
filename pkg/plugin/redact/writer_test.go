package redact_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

func TestWriter(t *testing.T) {
	const text = "password hunter22!\n\x1b[2J\n::error::x\n"
	for name, c := range map[string]struct {
		masker *redact.Masker
		want   string
	}{
		"masked":    {learned(), "password ***!\n\\x1b[2J\n\\x3a:error::x\n"},
		"no masker": {nil, "password hunter22!\n\\x1b[2J\n\\x3a:error::x\n"},
	} {
		var out strings.Builder
		if n, err := io.WriteString(redact.NewWriter(&out, c.masker), text); n != len(text) || err != nil || out.String() != c.want {
			t.Errorf("%s: got %q, %d of %d bytes, %v", name, out.String(), n, len(text), err)
		}
	}
	for text, want := range map[string]string{
		"error: a\nNext: b\n  c\n\nwarning: d\n": "error: a\n  Next: b\n  c\n\n  warning: d\n",
		"note: a\nNext: b\n":                     "note: a\n  Next: b\n",
		"warning: a\rb\n":                        "warning: a\\x0db\n",
		"NAME\na\nb\n":                           "NAME\na\nb\n",
	} {
		var out strings.Builder
		if _, err := io.WriteString(redact.NewWriter(&out, nil), text); err != nil || out.String() != want {
			t.Errorf("%q: got %q, %v; want %q", text, out.String(), err, want)
		}
	}
	r, w := io.Pipe()
	r.CloseWithError(errors.New("no reader"))
	if n, err := io.WriteString(redact.NewWriter(w, nil), text); n != 0 || err == nil {
		t.Errorf("a broken pipe: %d, %v", n, err)
	}
}
