package limit_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

type name string

func (n name) String() string { return string(n) }

// A rule has its time without what it waits for, also where it is evaluated within another one.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, done := limit.Rule(t.Context(), name("outer"))
		defer done()
		ctx, done := limit.Rule(context.WithValue(outer, name("x"), 1), name("inner"))
		defer done()
		limit.Wait(ctx, func() {
			limit.Wait(ctx, func() { time.Sleep(time.Hour) })
			time.Sleep(time.Hour)
			if err := errors.Join(outer.Err(), ctx.Err()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(limit.Time - 1)
		clock := limit.ClockOf(ctx)
		if err := errors.Join(outer.Err(), ctx.Err(), clock.Steps(1<<20)); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Nanosecond)
		var over *limit.Error
		if err := ctx.Err(); !errors.As(err, &over) || err.Error() != "reached the limit of 5 seconds for one rule on one object" {
			t.Errorf("got %v", err)
		}
		n := 0
		for n = 1; clock.Step() == nil && n < 1<<20; n++ {
		}
		if n != 1<<10 {
			t.Errorf("%d steps until the clock looks at the time", n)
		}
	})
}

func TestValue(t *testing.T) {
	var shared any = strings.Repeat("x", 1<<10)
	for range 14 {
		shared = []any{shared, shared}
	}
	if err := limit.Value(map[string]any{"a": shared}); err != nil {
		t.Error(err)
	}
	for range 30 {
		shared = []any{shared, map[string]any{"x": shared}}
	}
	if err := limit.Value(shared); err == nil || err.Error() != "reached the limit of 33554432 bytes that a rule builds at once" {
		t.Errorf("got %v", err)
	}
}

// A run that keeps too much is cancelled, and told which rule was evaluated.
func TestWatch(t *testing.T) {
	ctx, stop := limit.Watch(t.Context(), 64<<20)
	defer stop()
	_, done := limit.Object(ctx, name("Pod shop/other"))
	defer done()
	object, done := limit.Object(ctx, name("Pod shop/web"))
	defer done()
	outer, done := limit.Rule(object, name("p/r"))
	defer done()
	_, done = limit.Rule(outer, name("p/within"))
	done()
	var kept [][]byte
	for range 128 {
		kept = append(kept, make([]byte, 1<<20))
	}
	runtime.GC()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the run goes on")
	}
	runtime.KeepAlive(kept)
	var exceeded *limit.MemoryError
	if err := context.Cause(ctx); !errors.As(err, &exceeded) || !strings.Contains(err.Error(), "its limit of 64 MiB, at p/r on Pod shop/web; the environment variable GOMEMLIMIT raises it") {
		t.Errorf("got %v", err)
	}
}

func TestMemory(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	for _, c := range []struct{ machine, container, want int64 }{
		{0, 0, 2 << 30}, {4 << 30, 0, 1 << 30}, {64 << 30, 1 << 50, 2 << 30}, {64 << 30, 1 << 30, 3 << 28}, {1 << 30, 1 << 30, 1 << 28},
	} {
		if got := limit.Memory(c.machine, c.container); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
	debug.SetMemoryLimit(5 << 30)
	if got := limit.Memory(4<<30, 0); got != 5<<30 {
		t.Errorf("with GOMEMLIMIT: got %d", got)
	}
}
