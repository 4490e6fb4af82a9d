// Package process has what concerns the process as a whole: exit codes and the error that a command ends
// with, how much memory a run may have, and which build this is.
package process

import (
	"os"
	"runtime/debug"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// garbage is how much garbage there may be beside what is kept, in percent of that: more takes less time, and
// more memory than a run may have.
const garbage = 125

// SetMemoryLimit sets the limit of memory of the process, near which it collects garbage more often, and
// returns it.
func SetMemoryLimit() int64 {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	most := limit.Memory(machine(), container())
	debug.SetMemoryLimit(most)
	return most
}
