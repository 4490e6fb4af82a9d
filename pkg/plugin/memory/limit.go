package memory

import (
	"runtime/debug"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// SetLimit sets the limit of memory of the process, near which it collects garbage more often, and returns it.
func SetLimit() int64 {
	most := limit.Memory(available())
	debug.SetMemoryLimit(most)
	return most
}
