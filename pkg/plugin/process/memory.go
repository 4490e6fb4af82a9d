// Package process has the exit codes and errors, the memory limit and the version of the program.
package process

import (
	"os"
	"runtime/debug"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// garbage is the value of GOGC: a higher one takes less time, and more memory than a run may have.
const garbage = 200

// SetMemoryLimit sets the soft memory limit of the process and returns it in bytes.
func SetMemoryLimit() int64 {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	most := limit.Memory(machine(), container())
	debug.SetMemoryLimit(most)
	return most
}
