package write

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// start waits for interrupts; interrupt sends a signal, and exited reports when it ended the process.
func start(t *testing.T) (i *Interrupts, interrupt func(), exited func() time.Duration) {
	t.Helper()
	signals := make(chan os.Signal, 2)
	i = &Interrupts{}
	stopped, begin := make(chan struct{}), time.Now()
	after := never
	go i.run(signals, nil, func() {}, stopped, func() { after = time.Since(begin) })
	t.Cleanup(func() { close(stopped) })
	interrupt = func() {
		signals <- os.Interrupt
		synctest.Wait()
	}
	return i, interrupt, func() time.Duration {
		synctest.Wait()
		return after
	}
}

// never is when a process ends that goes on.
const never time.Duration = -1

func TestInterrupts(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(i *Interrupts, interrupt func())
		want time.Duration // after which the process ends
	}{
		"no interrupt":           {func(*Interrupts, func()) {}, never},
		"one interrupt":          {func(_ *Interrupts, interrupt func()) { interrupt() }, InterruptGrace},
		"a second interrupt":     {func(_ *Interrupts, interrupt func()) { interrupt(); time.Sleep(time.Second); interrupt() }, time.Second},
		"held":                   {func(i *Interrupts, interrupt func()) { i.Hold(); interrupt() }, never},
		"held and released":      {held, time.Hour + InterruptGrace},
		"released before":        {func(i *Interrupts, interrupt func()) { _, release := i.Hold(); release(); interrupt() }, InterruptGrace},
		"held, second interrupt": {func(i *Interrupts, interrupt func()) { i.Hold(); interrupt(); interrupt() }, InterruptGrace},
		"held, third interrupt":  {func(i *Interrupts, interrupt func()) { i.Hold(); interrupt(); interrupt(); interrupt() }, 0},
		"none that is known":     {func(_ *Interrupts, interrupt func()) { (*Interrupts)(nil).Hold(); interrupt() }, InterruptGrace},
		"held again after it":    {func(i *Interrupts, interrupt func()) { interrupt(); i.Hold() }, InterruptGrace},
		"held again, no longer": {func(i *Interrupts, interrupt func()) {
			_, release := i.Hold()
			release()
			i.Hold()
			interrupt()
		}, never},
		"released more than once": {func(i *Interrupts, interrupt func()) {
			_, release := i.Hold()
			release()
			release()
			interrupt()
		}, InterruptGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i, interrupt, exited := start(t)
				c.run(i, interrupt)
				time.Sleep(2 * time.Hour)
				if got := exited(); got != c.want {
					t.Errorf("the process ended after %v, want %v", got, c.want)
				}
			})
		})
	}
}

func held(i *Interrupts, interrupt func()) {
	_, release := i.Hold()
	interrupt()
	time.Sleep(time.Hour)
	release()
}
