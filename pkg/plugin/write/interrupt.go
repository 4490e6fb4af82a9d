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

// InterruptContext returns a context that the first interrupt cancels; that the parent is cancelled counts as
// one. If the process still runs after Grace, or at a second interrupt, exit is called, unless Hold delays
// it: a second interrupt begins a new Grace then. Call stop when the run has ended.
func InterruptContext(parent context.Context, exit func(context.Context)) (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	w := &watch{signals: signals, grace: InterruptGrace}
	ctx, cancel := context.WithCancel(context.WithValue(parent, watchKey{}, w))
	stopped := make(chan struct{})
	go w.run(parent.Done(), cancel, stopped, func() { exit(ctx) })
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(stopped)
		cancel()
	})
}

// AnnounceWrites tells a context of InterruptContext that its command writes. Where it is interrupted before
// its first HoldInterrupt, nothing was written.
func AnnounceWrites(ctx context.Context) {
	if w, ok := ctx.Value(watchKey{}).(*watch); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.announced = true
	}
}

// BeforeWrites reports whether the command of a context has announced writes and has begun none.
func BeforeWrites(ctx context.Context) bool {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.announced && w.hold == nil
}

// HoldInterrupt delays the end of the process after the first interrupt until release is called: requests
// are in flight, whose answers have to be recorded. The channel is closed at a second interrupt.
// A context that is not of Context has none.
func HoldInterrupt(ctx context.Context) (second <-chan struct{}, release func()) {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if !ok {
		return nil, func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &hold{released: make(chan struct{}), second: make(chan struct{})}
	w.hold = h
	return h.second, sync.OnceFunc(func() { close(h.released) })
}

// watchKey is the key of the watch of a context.
type watchKey struct{}

// watch waits for interrupts.
type watch struct {
	signals <-chan os.Signal
	grace   time.Duration

	mu        sync.Mutex
	hold      *hold // the latest
	announced bool
}

// hold is a part of a run that is not to be cut off by a single interrupt.
type hold struct{ released, second chan struct{} }

// run waits for the first interrupt, and ends the process after it.
func (w *watch) run(ended <-chan struct{}, cancel func(), stopped <-chan struct{}, exit func()) {
	select {
	case <-stopped:
		return
	case <-ended:
	case <-w.signals:
		cancel()
	}
	h := w.held()
	if h != nil {
		select {
		case <-stopped:
			return
		case <-h.released:
		case <-w.signals:
			close(h.second)
		}
	}
	select {
	case <-stopped:
		return
	case <-time.After(w.grace):
	case <-w.signals:
	}
	exit()
}

// held returns the hold that is not released; nil if there is none.
func (w *watch) held() *hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hold == nil {
		return nil
	}
	select {
	case <-w.hold.released:
		return nil
	default:
		return w.hold
	}
}
