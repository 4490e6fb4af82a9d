package memory

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

func TestSetLimit(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	if most, got := SetLimit(), debug.SetMemoryLimit(-1); most <= 0 || most > limit.MaxMemory || got != most {
		t.Errorf("the limit is %d, want %d", got, most)
	}
}
