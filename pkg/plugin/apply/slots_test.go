package apply

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestSlotsLimitWritesInFlight(t *testing.T) {
	slots := NewSlots(3)
	var mu sync.Mutex
	under, most := 0, 0
	count := func(d int) {
		mu.Lock()
		defer mu.Unlock()
		under += d
		most = max(most, under)
	}
	err := ForEach(100, 10,
		func(int) (int, error) {
			release, err := slots.take(t.Context())
			if err != nil {
				return 0, err
			}
			defer release()
			count(1)
			defer count(-1)
			return 0, nil
		},
		func(int, int) bool { return false })
	if err != nil || most > 3 || len(slots) != 0 {
		t.Errorf("%d at once, %d not given back, %v", most, len(slots), err)
	}
}

func TestSlotsStopWaitingWithTheRun(t *testing.T) {
	slots := NewSlots(1)
	if _, err := slots.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := slots.take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
