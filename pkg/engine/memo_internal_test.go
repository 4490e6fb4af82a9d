package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// What is kept takes a bounded amount of memory, keys included, whatever is asked for: what was not asked for the
// longest goes first, and never what was got last.
func TestMemoIsBounded(t *testing.T) {
	type question struct{ number, body string }
	tests := map[string]struct {
		key   func(i int) any
		value any
		err   error
	}{
		"values": {func(i int) any { return i }, strings.Repeat("x", maxMemo/4), nil},
		"keys":   {func(i int) any { return question{string(rune('a' + i)), strings.Repeat("x", maxMemo/4)} }, 1, nil},
		"lists":  {func(i int) any { return i }, []any{map[string]any{"data": []byte(strings.Repeat("x", maxMemo/4))}}, nil},
		"errors": {func(i int) any { return i }, nil, errors.New(strings.Repeat("x", maxMemo/4))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var m Memo
			calls := 0
			ask := func(key any) {
				_, _ = m.Do(t.Context(), key, func(context.Context) (any, error) { calls++; return tt.value, tt.err })
			}
			for i := range 10 {
				ask(tt.key(i))
				ask(tt.key(0)) // which is asked again and again
			}
			if calls != 10 {
				t.Errorf("got %d values, want each of 10 once", calls)
			}
			if len(m.entries) != m.used.Len() || m.used.Len() > 3 || m.size > maxMemo {
				t.Errorf("%d are kept, in %d bytes", m.used.Len(), m.size)
			}
			ask(tt.key(1))
			if calls != 11 {
				t.Error("the oldest is kept")
			}
		})
	}
}

// A value that takes more than all others may is there for those who ask for it next.
func TestMemoKeepsTheLast(t *testing.T) {
	var m Memo
	m.keep("small", 1)
	m.keep("large", strings.Repeat("x", 2*maxMemo))
	if _, ok := m.kept("large"); !ok || m.used.Len() != 1 {
		t.Errorf("%d are kept", m.used.Len())
	}
	for range 3 {
		m.keep("large", "x") // replaced, not added
	}
	if m.used.Len() != 1 || m.size > 2*entrySize {
		t.Errorf("%d are kept, in %d bytes", m.used.Len(), m.size)
	}
	if _, ok := m.kept("small"); ok {
		t.Error("the oldest is kept")
	}
}
