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
