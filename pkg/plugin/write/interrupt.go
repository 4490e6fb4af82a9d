// This file ends the process soon after Ctrl-C or SIGTERM, whatever it is doing.

package write

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// InterruptGrace is the time for a run to end by itself. It covers code that ignores its context, such as a
// policy function, discovery, or reading from a pipe.
const InterruptGrace = 1500 * time.Millisecond

// Interrupts handles Ctrl-C and SIGTERM, and tracks requests in flight. A nil one handles none.
type Interrupts struct {
	mu     sync.Mutex
	hold   *hold // the latest one
	writes bool  // announced
}

// hold protects a part of a run from a single interrupt.
type hold struct{ released, second chan struct{} }

// Context returns a context that the first interrupt, or the end of the parent, cancels. exit is called if
// the process still runs after InterruptGrace, or at a second interrupt, unless Hold delays it: then a second
// interrupt begins a new InterruptGrace. Call stop when the run has ended.
func (i *Interrupts) Context(parent context.Context, exit func(context.Context)) (
	ctx context.Context, stop func(),
) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(parent)
	stopped := make(chan struct{})
	go i.run(signals, parent.Done(), cancel, stopped, func() { exit(ctx) })
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(stopped)
		cancel()
	})
}

// AnnounceWrites announces that the command writes. An interrupt before its first Hold means that nothing was
// written.
func (i *Interrupts) AnnounceWrites() {
	if i != nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.writes = true
	}
}

// BeforeWrites reports whether the command has announced writes but begun none.
func (i *Interrupts) BeforeWrites() bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.writes && i.hold == nil
}

// Hold delays the end of the process after the first interrupt until release is called: the responses to
// requests in flight have to be recorded. The channel is closed at a second interrupt.
func (i *Interrupts) Hold() (second <-chan struct{}, release func()) {
	if i == nil {
		return nil, func() {}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	h := &hold{released: make(chan struct{}), second: make(chan struct{})}
	i.hold = h
	return h.second, sync.OnceFunc(func() { close(h.released) })
}

// run waits for the first interrupt, then ends the process.
func (i *Interrupts) run(signals <-chan os.Signal, ended <-chan struct{}, cancel func(),
	stopped <-chan struct{}, exit func(),
) {
	select {
	case <-stopped:
		return
	case <-ended:
	case <-signals:
		cancel()
	}
	if h := i.held(); h != nil {
		select {
		case <-stopped:
			return
		case <-h.released:
		case <-signals:
			close(h.second)
		}
	}
	select {
	case <-stopped:
		return
	case <-time.After(InterruptGrace):
	case <-signals:
	}
	exit()
}

// held returns the current hold, or nil.
func (i *Interrupts) held() *hold {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.hold == nil {
		return nil
	}
	select {
	case <-i.hold.released:
		return nil
	default:
		return i.hold
	}
}
