package limit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Time limits one rule on one object, without its waits for others, such as a server.
const Time = 5 * time.Second

// The bounds of one evaluation fit every policy that a server would admit. Policies and cluster contents are
// untrusted.
const (
	Depth       = 128     // nesting of objects, patches and expressions
	Elements    = 10_000  // of a list that a rule iterates over
	ContextSize = 2 << 20 // bytes of data that a rule loads besides the object
	Rounds      = 100     // of any fixed point
)

// lookEvery is how many steps a Clock takes between two looks at the time.
const lookEvery = 1 << 10

// Error is a bound that an evaluation would exceed.
type Error struct {
	What string // "levels of nesting"
	Max  int
}

// Error names the limit.
func (e *Error) Error() string { return fmt.Sprintf("reached the limit of %d %s", e.Max, e.What) }

// Clock measures the time of one rule on one object. The zero Clock, and a nil one, measure nothing. It is
// the context of the rule.
type Clock struct {
	context.Context
	outer  *Clock // of the rule that evaluates this one
	rule   fmt.Stringer
	began  time.Time
	steps  int          // since the last look, by the only goroutine of the rule
	err    error        // of the last look: loops that it ends need not return it
	waited atomic.Int64 // nanoseconds
	since  atomic.Int64 // when the current wait began, in nanoseconds after the rule; 0 for none
}

type clockKey struct{}

// Value returns the clock itself for its key.
func (c *Clock) Value(key any) any {
	if key == (clockKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Rule returns the context of a rule on an object, with a Clock of its own. Call done afterwards.
func Rule(ctx context.Context, rule fmt.Stringer) (_ context.Context, done func()) {
	c := &Clock{Context: ctx, outer: ClockOf(ctx), rule: rule, began: time.Now()}
	return c, enter(ctx, c)
}

// ClockOf returns the clock of the rule of the context; nil for none.
func ClockOf(ctx context.Context) *Clock {
	c, _ := ctx.Value(clockKey{}).(*Clock)
	return c
}

// Step is called for each round of a loop that a policy can make long. It returns the error of Err at
// intervals, and always once there was one.
func (c *Clock) Step() error { return c.Steps(1) }

// Steps is Step for n rounds, or visited values.
func (c *Clock) Steps(n int) error {
	if c == nil {
		return nil
	}
	if c.steps += n; c.steps < lookEvery || c.err != nil {
		return c.err
	}
	c.steps, c.err = 0, c.Err()
	return c.err
}

// Err returns the error of the context around the rule, or an *Error when the rule has taken too long. No
// timer is needed, since the evaluation asks; so Done is not closed then.
func (c *Clock) Err() error {
	if c == nil || c.Context == nil {
		return nil
	}
	if err := c.Context.Err(); err != nil {
		return err
	}
	if c.taken() > Time {
		return &Error{What: "seconds for one rule on one object", Max: int(Time / time.Second)}
	}
	return nil
}

// Left returns the remaining time of the rule of the context; all of it without a rule.
func Left(ctx context.Context) time.Duration {
	if c := ClockOf(ctx); c != nil {
		return max(Time-c.taken(), 0)
	}
	return Time
}

// taken is the time without waits.
func (c *Clock) taken() time.Duration {
	now := int64(time.Since(c.began))
	waited := c.waited.Load()
	if since := c.since.Load(); since > 0 {
		waited += now - since
	}
	return time.Duration(now - waited)
}

// Wait calls a function that waits for others, such as a server. Its time does not count for the rule of the
// context.
func Wait(ctx context.Context, ask func()) {
	for c := ClockOf(ctx); c != nil; c = c.outer {
		defer c.wait()()
	}
	ask()
}

// wait begins a wait, and returns its end.
func (c *Clock) wait() (end func()) {
	began := max(int64(time.Since(c.began)), 1)
	if !c.since.CompareAndSwap(0, began) { // within a wait
		return func() {}
	}
	return func() {
		c.since.Store(0)
		c.waited.Add(int64(time.Since(c.began)) - began)
	}
}

// MaxSize limits a string or a value that is built, in bytes of its JSON, about.
const MaxSize = 32 << 20

// bytesOfValue is the size of each value besides its string.
const bytesOfValue = 16

// Size returns an *Error if a rule may not build so many bytes at once.
func Size(bytes int) error {
	if bytes > MaxSize {
		return &Error{What: "bytes that a rule builds at once", Max: MaxSize}
	}
	return nil
}

// Value is Size for the Bytes of a value.
func Value(value any) error { return Size(Bytes(value)) }

// Bytes returns the size of a JSON value in bytes, about, and at most just over MaxSize. It counts the tree,
// as its writers will see it: a list can hold another so often that its JSON would fit into no memory.
func Bytes(value any) int { return add(0, value) }

// add adds the size of a value to a sum, until that is too large.
func add(sum int, value any) int {
	if sum += bytesOfValue; sum > MaxSize {
		return sum
	}
	switch v := value.(type) {
	case string:
		sum += len(v)
	case []any:
		for _, item := range v {
			if sum = add(sum, item); sum > MaxSize {
				return sum
			}
		}
	case map[string]any:
		for key, item := range v {
			if sum = add(sum+len(key), item); sum > MaxSize {
				return sum
			}
		}
	}
	return sum
}
