// This file ends the process soon after Ctrl-C or SIGTERM, wherever it is.

package write

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// InterruptGrace is how long a run may take to end by itself. It is for what does not look at its
// context, such as a function of a policy, discovery, or a file that is a pipe.
const InterruptGrace = 1500 * time.Millisecond

// Interrupts knows of Ctrl-C and SIGTERM, and whether requests are in flight then. Nil knows of none.
type Interrupts struct {
	mu     sync.Mutex
	hold   *hold // the latest
	writes bool  // announced
}

// hold is a part of a run that is not to be cut off by a single interrupt.
type hold struct{ released, second chan struct{} }

// Context returns a context that the first interrupt cancels; that the parent is cancelled counts as
// one. If the process still runs after InterruptGrace, or at a second interrupt, exit is called, unless Hold
// delays it: a second interrupt begins a new InterruptGrace then. Call stop when the run has ended.
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

// AnnounceWrites says that the command writes. Where it is interrupted before
// its first Hold, nothing was written.
func (i *Interrupts) AnnounceWrites() {
	if i != nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.writes = true
	}
}

// BeforeWrites reports whether the command has announced writes and has begun none.
func (i *Interrupts) BeforeWrites() bool {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.writes && i.hold == nil
}

// Hold delays the end of the process after the first interrupt until release is called: requests
// are in flight, whose answers have to be recorded. The channel is closed at a second interrupt.
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

// run waits for the first interrupt, and ends the process after it.
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

// held returns the hold that is not released; nil if there is none.
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
