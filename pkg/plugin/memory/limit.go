package memory

import (
	"math"
	"runtime/debug"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// SetLimit sets the limit of memory of the process, near which it collects garbage more often, and returns it.
func SetLimit() int64 {
	most := limit.Memory(available())
	debug.SetMemoryLimit(most)
	return most
}

// Limit returns the soft memory limit; zero if there is none.
func Limit() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}
