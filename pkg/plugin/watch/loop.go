package watch

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RetryError is an error of an evaluation that may succeed later, such as one of a server that restarts.
type RetryError struct{ Err error }

// Error is the reason.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RetryError) Unwrap() error { return e.Err }

// Loop evaluates the events of a Queue, some after others.
type Loop struct {
	Queue *Queue
	Most  int // events that are evaluated at once
	// Evaluate evaluates events. After a *RetryError it is called again, with what came meanwhile, for as long
	// as it takes; any other error is reported, and these events are over.
	Evaluate func(context.Context, []*Event) error
	Report   func(error)
	// Settle is how long the loop waits for more changes of an object after one, which often come in groups.
	Settle time.Duration
}

// Run evaluates events until the context ends or stop does. An evaluation that has begun is ended by the context alone.
func (l *Loop) Run(ctx, stop context.Context) {
	delay, failures := DefaultBackoff().DelayFunc(), 0
	for {
		came, err := l.Queue.Wait(stop)
		if err != nil || !Pause(stop, time.Until(came.Add(l.Settle))) {
			return
		}
		events := l.Queue.Take(l.Most)
		err = l.Evaluate(ctx, events)
		var again *RetryError
		switch {
		case ctx.Err() != nil:
			return
		case !errors.As(err, &again):
			delay, failures = DefaultBackoff().DelayFunc(), 0
			if err != nil {
				l.Report(fmt.Errorf("%s of %s: %w", events[0].Operation, events[0].Key, err))
			}
			continue
		}
		l.Queue.Return(events)
		if failures++; failures == quietFailures {
			l.Report(fmt.Errorf("cannot evaluate %s of %s, trying again: %w", events[0].Operation, events[0].Key, err))
		}
		if !Pause(ctx, delay()) {
			return
		}
	}
}

// Pause waits, and reports whether the context is still not over.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
