// Package memory knows how much memory a run may have on this machine.
package memory

import (
	"os"
	"runtime/debug"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// garbage is how much garbage there may be beside what is kept, in percent of that: Go's own choice, 100, takes a tenth more time.
const garbage = 150

// SetLimit sets the limit of memory of the process, near which it collects garbage more often, and returns it.
func SetLimit() int64 {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	most := limit.Memory(machine(), container())
	debug.SetMemoryLimit(most)
	return most
}
