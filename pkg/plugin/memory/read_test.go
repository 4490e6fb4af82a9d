package memory_test

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/plugin/memory"
)

// endless is a text without an end.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestReadAll(t *testing.T) {
	text := strings.Repeat("{a: 1}\n", 1<<19) // 3.5 MiB
	for name, in := range map[string]io.Reader{"at once": strings.NewReader(text), "in pieces": iotest.HalfReader(strings.NewReader(text))} {
		for _, size := range []int{0, 1, len(text), 2 * len(text)} {
			if got, err := new(memory.Budget).ReadAll(in, size, 2*len(text)); err != nil || string(got) != text {
				t.Errorf("%s, %d bytes are expected: %d of %d bytes, %v", name, size, len(got), len(text), err)
			}
			if s, ok := in.(io.Seeker); ok {
				_, _ = s.Seek(0, io.SeekStart)
			} else {
				in = iotest.HalfReader(strings.NewReader(text))
			}
		}
	}
	for _, c := range []struct {
		name        string
		in          io.Reader
		size, limit int
		budget      memory.Budget
		want        error
	}{
		{"as long as the limit", strings.NewReader(text), 0, len(text), memory.Budget{}, nil},
		{"longer than the limit", strings.NewReader(text), 0, len(text) - 1, memory.Budget{}, memory.ErrTooLong},
		{"a size beyond the limit", endless('x'), 1 << 50, 1 << 20, memory.Budget{}, memory.ErrTooLong},
		{"a size beyond the budget", endless('x'), 1 << 50, 1 << 60, memory.Budget{}, memory.ErrTooLarge},
		{"no end", endless('x'), 0, 8 << 20, memory.Budget{}, memory.ErrTooLong},
		{"a budget", endless('x'), 0, 1 << 60, memory.Budget{Limit: 8 << 20}, memory.ErrTooLarge},
		{"a budget of values", endless('{'), 0, 1 << 60, memory.Budget{Limit: 64 << 20}, memory.ErrTooLarge},
		{"a read error", iotest.ErrReader(io.ErrClosedPipe), 0, 1, memory.Budget{}, io.ErrClosedPipe},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := c.budget.ReadAll(c.in, c.size, c.limit); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; c.want != nil && took > 12<<20 {
			t.Errorf("%s: %d MiB were allocated", c.name, took>>20)
		}
	}
	if got, err := new(memory.Budget).ReadAll(bytes.NewReader(nil), 0, 1); err != nil || len(got) != 0 {
		t.Errorf("nothing: %q, %v", got, err)
	}
}
