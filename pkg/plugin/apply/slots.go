package apply

import "context"

// Slots limit how many writes are in flight, so that more workers than that can wait
// for the journal meanwhile. Nil is no limit.
type Slots chan struct{}

// NewSlots returns n slots.
func NewSlots(n int) Slots { return make(Slots, n) }

// take waits for a slot, and returns the function that releases it.
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
