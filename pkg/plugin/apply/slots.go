package apply

import "context"

// Slots bound how many writes are on their way to the server at once, so that
// more workers than that can wait for the records of their journal meanwhile. Nil
// bounds nothing.
type Slots chan struct{}

// NewSlots are n of them.
func NewSlots(n int) Slots { return make(Slots, n) }

// take waits for a slot, and returns how to give it back.
func (s Slots) take(ctx context.Context) (release func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
