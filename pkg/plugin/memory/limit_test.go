package memory

import (
	"errors"
	"math"
	"runtime/debug"
	"testing"
)

func TestSetLimit(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "100MiB") // which the runtime has read, or would have
	if SetLimit(); Limit() != 0 {
		t.Errorf("with GOMEMLIMIT the limit became %d, want no other", Limit())
	}
	t.Setenv("GOMEMLIMIT", "")
	SetLimit()
	if known := available(); Limit() != known/100*share {
		t.Errorf("the limit is %d, want %d %% of %d", Limit(), share, known)
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

func TestManyInputsLeaveLessRoomForGarbage(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	t.Setenv("GOGC", "")
	b := Budget{Limit: 2 * large}
	if err := b.Spend(0, large-1); err != nil || percent() != 100 {
		t.Errorf("GOGC is %d below the limit, %v", percent(), err)
	}
	if err := b.Spend(0, 1); err != nil || percent() != largePercent {
		t.Errorf("GOGC is %d at the limit, want %d, %v", percent(), largePercent, err)
	}
	debug.SetGCPercent(100)
	t.Setenv("GOGC", "100") // the user's choice
	b = Budget{Limit: 2 * large}
	if err := b.Spend(0, large); err != nil || percent() != 100 {
		t.Errorf("GOGC is %d although the user set it, %v", percent(), err)
	}
}
