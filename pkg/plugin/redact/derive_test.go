package redact_test

import (
	"strings"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/redact"
)

type (
	list   = []any
	object = map[string]any
)

func TestDerive(t *testing.T) {
	for _, tt := range []struct {
		name         string
		result       any
		from         list
		text, masked string
	}{
		{"a text made of a value", "HUNTER22", list{"hunter22"}, "as HUNTER22!", "as ***!"},
		{"a text made of its base64", "AHVUDGV", list{"aHVudGVyMjIK"}, "AHVUDGV", "***"},
		{"a text made of a text that holds it", "URL=HUNTER22", list{"url=hunter22"}, "URL=HUNTER22", "***"},
		{"a text made of a list that holds it", "URL", list{list{"a", object{"k": "hunter22"}}}, "URL", "***"},
		{"a short text made of a short value", "cba", list{"abc"}, "cba", "***"},
		{"a short text inside another", "cba", list{"abc"}, "cbas", "cbas"},
		{"the texts of a list", list{"hun", "ter222"}, list{"hunter22"}, "ter222", "***"},
		{"the texts of a map", object{"k": list{"ter222"}}, list{"hunter22"}, "ter222", "***"},
		{"a long name of a field", object{"hunter-hunter-hunter": nil}, list{"hunter22"}, "hunter-hunter-hunter", "***"},
		{"a short name of a field", object{"username": nil}, list{"hunter22"}, "username", "username"},
		{"a number of many digits", int64(123456), list{"hunter22"}, "123456", "***"},
		{"a number such as a length", int64(8), list{"hunter22"}, "8", "8"},
		{"as JSON quotes it", `say "HUNTER"`, list{"hunter22"}, `{"a":"say \"HUNTER\""}`, `{"a":"***"}`},
		{"a trivial word", "true", list{"hunter22"}, "true", "true"},
		{"a text made of others", "SOMETHING", list{"something", int64(8), list{true, nil}}, "SOMETHING", "SOMETHING"},
		{"a text made of nothing", "SOMETHING", nil, "SOMETHING", "SOMETHING"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := learned()
			m.Derive(tt.result, tt.from...)
			if got := m.Text(tt.text); got != tt.masked {
				t.Errorf("%q is shown as %q, want %q", tt.text, got, tt.masked)
			}
		})
	}
}

func TestDerivePublic(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result any
		from   list
		want   string
	}{
		{"a text that was joined with it", "db://user:hunter22@host", list{"db://", "user", ":", "hunter22", "@host"}, "db://user:***@host"},
		{"a part that is split off", list{"db://host/", ""}, list{"db://host/hunter22", "hunter22"}, "db://host/"},
		{"a format", "web-1: hunter22", list{"%s-1: %s", "web", "hunter22"}, "web-1: ***"},
		{"and what is new is not", "DB-hunter22", list{"db-", "hunter22"}, "***"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := learned()
			m.Derive(tt.result, tt.from...)
			text, ok := tt.result.(string)
			if !ok {
				text = tt.result.(list)[0].(string)
			}
			if got := m.Text(text); got != tt.want {
				t.Errorf("%q is shown as %q, want %q", text, got, tt.want)
			}
		})
	}
}

func TestDeriveAgain(t *testing.T) {
	m := learned()
	m.Derive("HUNTER22", "hunter22")
	m.Derive("22RETNUH", "HUNTER22")
	if got := m.Text("x22RETNUHx"); got != "x***x" {
		t.Errorf("got %q", got)
	}
}

func TestKnown(t *testing.T) {
	m := learned()
	for _, known := range []any{"hunter22", "url=hunter22", "abc", list{"x", object{"k": "hunter22"}}} {
		if !m.Known(known) {
			t.Errorf("%v is not known", known)
		}
	}
	for _, unknown := range []any{nil, "", "hunter2", "an abc", int64(3), true, 1.5, list{}, object{"hunter22": "x"}} {
		if m.Known(unknown) {
			t.Errorf("%v is known", unknown)
		}
	}
	if (&redact.Masker{}).Known("hunter22") || (*redact.Masker)(nil).Known("hunter22") {
		t.Error("a Masker that has learned nothing knows something")
	}
}

// shared is a value whose text would have 2^60 parts.
func shared(of any) any {
	for range 60 {
		of = list{of, of}
	}
	return of
}

func TestDeriveIsBounded(t *testing.T) {
	m := learned()
	if !m.Known(shared("x")) {
		t.Error("a value that is too big to be looked at is taken for harmless")
	}
	m.Derive(shared("REST"), "hunter22")
	m.Derive("something", shared("x"))
	m.Derive(strings.Repeat("ab,", 100_000), strings.Repeat("a,b", 100_000)+"hunter22")
	if got := m.Text("REST and something"); got != "REST and ***" {
		t.Errorf("got %q", got)
	}
	if got := m.Text("REST"); got != redact.Mask {
		t.Errorf("got %q", got)
	}
}

func TestLearnValue(t *testing.T) {
	m := &redact.Masker{}
	m.LearnValue(object{"a": list{"from a Secret"}})
	if got := m.Text("is from a Secret"); got != "is ***" {
		t.Errorf("got %q", got)
	}
}

func BenchmarkDerive(b *testing.B) {
	for name, m := range map[string]*redact.Masker{"no Secrets": {}, "Secrets": learned()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m.Derive("registry.example/app:v1-suffix", "registry.example/app:v1", "-suffix")
			}
		})
	}
}
