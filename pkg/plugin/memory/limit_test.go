package memory

import (
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

func TestSetLimit(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	if most := SetLimit(); most <= 0 || most > limit.MaxMemory || Limit() != most {
		t.Errorf("the limit is %d, want %d", Limit(), most)
	}
}

func TestBudgetIsHalfOfTheLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 20))
	var b Budget
	if err := b.Spend(0, 1<<19); err != nil {
		t.Error(err)
	}
	if err := b.Spend(0, 1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Spend returned %v beyond a half of the limit", err)
	}
}

func TestPercent(t *testing.T) {
	for kept, want := range map[uint64][2]int{
		0: {1600, 1600}, scant / 2: {200, 200}, scant / 4 * 3: {133, 133}, scant: {100, 100}, scant / 4 * 5: {80, 140}, scant * 2: {50, 150},
		roomy: {50, 100}, 2 * roomy: {50, 75}, 1 << 40: {50, 50},
	} {
		for i, spacious := range []bool{false, true} {
			if got := percent(kept, spacious); got != want[i] {
				t.Errorf("%d bytes leave room for %d %%, want %d %% (spacious: %t)", kept, got, want[i], spacious)
			}
		}
	}
}

func TestBoundGarbage(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	collected := func() {
		for range 100 { // what has to be done after a collection is done beside the program
			runtime.GC()
			runtime.Gosched()
		}
	}
	t.Setenv("GOGC", "100") // the user's choice
	BoundGarbage()
	kept := make([]byte, 4*roomy)
	collected()
	if got := percent(); got != 100 {
		t.Errorf("GOGC is %d although the user set it", got)
	}
	t.Setenv("GOGC", "")
	BoundGarbage()
	becomes := func(what string, holds func(percent int) bool) {
		for range 1000 {
			if collected(); holds(percent()) {
				return
			}
		}
		t.Fatalf("GOGC stays %d, want %s", percent(), what)
	}
	becomes("less than 70 for a large heap", func(p int) bool { return p < 70 })
	runtime.KeepAlive(kept)
	becomes("100 for a small one", func(p int) bool { return p >= 100 })
}

// What nothing refers to any more is given back at once.
func TestGiveBack(t *testing.T) {
	t.Setenv("GOGC", "")
	const size = 64 << 20
	func() {
		left := make([]byte, size)
		for i := 0; i < size; i += 4096 {
			left[i] = 1
		}
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	GiveBack()
	runtime.ReadMemStats(&after)
	if kept := after.HeapSys - after.HeapReleased; kept+size/2 > before.HeapSys-before.HeapReleased {
		t.Errorf("%d bytes of the heap are kept, and were before: %d", kept, before.HeapSys-before.HeapReleased)
	}
}
