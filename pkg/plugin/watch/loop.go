package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// RetryError is an error of an evaluation that may succeed later, such as one of a server that restarts.
type RetryError struct{ Err error }

// Error is the reason.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RetryError) Unwrap() error { return e.Err }

// SplitError is an error of some events of several, each of which is then to be evaluated by itself.
type SplitError struct{ Err error }

// Error is the reason.
func (e *SplitError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *SplitError) Unwrap() error { return e.Err }

// Loop evaluates the events of a Queue, some after others.
type Loop struct {
	Queue *Queue
	Most  int // events that are evaluated at once
	// Evaluate evaluates events. After a *RetryError it is called again, with what came meanwhile, for as long
	// as it takes, and after a *SplitError for each of several events by itself; any other error is reported, and these events are over.
	Evaluate func(context.Context, []*Event) error
	Report   func(error)
	// Settle is how long the loop waits for more changes of an object after one, which often come in groups.
	Settle time.Duration
	// Backoff is between two attempts; its zero value stands for one of up to half a minute.
	Backoff wait.Backoff
}

// Run evaluates events until the context ends or stop does. An evaluation that has begun is ended by the context alone.
func (l *Loop) Run(ctx, stop context.Context) {
	backoff := l.Backoff
	if backoff.Steps == 0 {
		backoff = DefaultBackoff()
	}
	delay, failures := backoff.DelayFunc(), 0
	for {
		came, err := l.Queue.Wait(stop)
		if err != nil || !Pause(stop, time.Until(came.Add(l.Settle))) {
			return
		}
		events := l.Queue.Take(l.Most)
		again, err := l.evaluate(ctx, events)
		if ctx.Err() != nil {
			return
		}
		if len(again) == 0 {
			delay, failures = backoff.DelayFunc(), 0
			continue
		}
		l.Queue.Return(again)
		if failures++; failures == quietFailures {
			l.Report(fmt.Errorf("cannot evaluate %s of %s, trying again: %w", again[0].Operation, again[0].Key, err))
		}
		if !Pause(ctx, delay()) {
			return
		}
	}
}

// evaluate evaluates events, each by itself where several fail together. It returns those that are to be evaluated again, and why.
func (l *Loop) evaluate(ctx context.Context, events []*Event) ([]*Event, error) {
	err := l.Evaluate(ctx, events)
	var again *RetryError
	var split *SplitError
	switch {
	case ctx.Err() != nil:
		return nil, nil
	case errors.As(err, &again):
		return events, err
	case errors.As(err, &split) && len(events) > 1:
		for i := range events {
			if left, err := l.evaluate(ctx, events[i:i+1]); len(left) > 0 {
				return events[i:], err
			}
		}
	case err != nil:
		l.Report(fmt.Errorf("%s of %s: %w", events[0].Operation, events[0].Key, err))
	}
	return nil, nil
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
