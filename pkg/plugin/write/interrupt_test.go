package write

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// start runs a watch; interrupt sends it a signal, and exited reports when it ended the process.
func start(t *testing.T) (ctx context.Context, interrupt func(), exited func() time.Duration) {
	t.Helper()
	signals := make(chan os.Signal, 2)
	w := &watch{signals: signals, grace: InterruptGrace}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), watchKey{}, w))
	stopped, begin := make(chan struct{}), time.Now()
	after := never
	go w.run(nil, cancel, stopped, func() { after = time.Since(begin) })
	t.Cleanup(func() { close(stopped) })
	interrupt = func() {
		signals <- os.Interrupt
		synctest.Wait()
	}
	return ctx, interrupt, func() time.Duration {
		synctest.Wait()
		return after
	}
}

// never is when a process ends that goes on.
const never time.Duration = -1

func TestContext(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(ctx context.Context, interrupt func())
		want time.Duration // after which the process ends
	}{
		"no interrupt":           {func(context.Context, func()) {}, never},
		"one interrupt":          {func(_ context.Context, interrupt func()) { interrupt() }, InterruptGrace},
		"a second interrupt":     {func(_ context.Context, interrupt func()) { interrupt(); time.Sleep(time.Second); interrupt() }, time.Second},
		"held":                   {func(ctx context.Context, interrupt func()) { HoldInterrupt(ctx); interrupt() }, never},
		"held and released":      {held, time.Hour + InterruptGrace},
		"released before":        {func(ctx context.Context, interrupt func()) { _, release := HoldInterrupt(ctx); release(); interrupt() }, InterruptGrace},
		"held, second interrupt": {func(ctx context.Context, interrupt func()) { HoldInterrupt(ctx); interrupt(); interrupt() }, InterruptGrace},
		"held, third interrupt":  {func(ctx context.Context, interrupt func()) { HoldInterrupt(ctx); interrupt(); interrupt(); interrupt() }, 0},
		"a context of its own":   {func(_ context.Context, interrupt func()) { HoldInterrupt(context.Background()); interrupt() }, InterruptGrace},
		"a context made of it":   {func(ctx context.Context, interrupt func()) { HoldInterrupt(context.WithoutCancel(ctx)); interrupt() }, never},
		"held again after it":    {func(ctx context.Context, interrupt func()) { interrupt(); HoldInterrupt(ctx) }, InterruptGrace},
		"held again, no longer": {func(ctx context.Context, interrupt func()) {
			_, release := HoldInterrupt(ctx)
			release()
			HoldInterrupt(ctx)
			interrupt()
		}, never},
		"released more than once": {func(ctx context.Context, interrupt func()) {
			_, release := HoldInterrupt(ctx)
			release()
			release()
			interrupt()
		}, InterruptGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt, exited := start(t)
				c.run(ctx, interrupt)
				time.Sleep(2 * time.Hour)
				if got := exited(); got != c.want {
					t.Errorf("the process ended after %v, want %v", got, c.want)
				}
			})
		})
	}
}

func held(ctx context.Context, interrupt func()) {
	_, release := HoldInterrupt(ctx)
	interrupt()
	time.Sleep(time.Hour)
	release()
}
