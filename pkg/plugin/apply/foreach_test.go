package apply

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestForEachKeepsTheOrder(t *testing.T) {
	const n = 200
	var running, most atomic.Int32
	var taken []int
	err := ForEach(n, 7, func(i int) (int, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		return i * i, nil
	}, func(i, r int) bool {
		if r != i*i {
			t.Errorf("%d for %d", r, i)
		}
		taken = append(taken, i)
		return false
	})
	if err != nil || len(taken) != n || !slices.IsSorted(taken) || most.Load() > 7 {
		t.Errorf("%v, %d taken, %d side by side", err, len(taken), most.Load())
	}
	if err := ForEach(0, 8, func(int) (int, error) { return 0, errors.New("called") }, nil); err != nil {
		t.Error(err)
	}
}

// What was started before the end is finished and passed on; the rest is never started.
func TestForEachStops(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		fail   error
		enough int
	}{"by an error": {broken, -1}, "because it is enough": {nil, 10}} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			started, taken := 0, 0
			err := ForEach(1000, 4, func(i int) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				started++
				if i == 10 {
					return i, c.fail
				}
				return i, nil
			}, func(i, _ int) bool { taken++; return i == c.enough })
			if !errors.Is(err, c.fail) || started != taken || started > 20 || started < 11 {
				t.Errorf("%v: %d started, %d taken", err, started, taken)
			}
		})
	}
}
