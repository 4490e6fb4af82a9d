// Package process has the exit codes and errors, the memory limit and the version of the program.
package process

import (
	"os"
	"runtime/debug"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// The values of GOGC: a higher one takes less time, and more memory than a run may have.
const (
	garbage        = 300
	garbageOfFiles = 100 // besides the headroom
	garbageOfWrite = 125 // besides the changes, which are held until they are written
)

func setGarbage(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// headroom counts as live for the garbage collector, which therefore runs less often. None of it is ever
// touched, so that it is not resident.
//
//nolint:gochecknoglobals,unused // of the process
var headroom []byte

// headroomSize, in bytes, is small beside the memory limit of most machines, which counts it.
const headroomSize = 112 << 20

// SaveTime takes memory to collect garbage less often, for a run on files.
func SaveTime() {
	if debug.SetMemoryLimit(-1) >= 8*headroomSize {
		headroom = make([]byte, headroomSize)
		setGarbage(garbageOfFiles)
	}
}

// SaveMemory takes time to collect garbage more often, for a run that holds all its changes.
func SaveMemory() { setGarbage(garbageOfWrite) }

// SetMemoryLimit sets the soft memory limit of the process and returns it in bytes.
func SetMemoryLimit() int64 {
	setGarbage(garbage)
	most := limit.Memory(machine(), container())
	debug.SetMemoryLimit(most)
	return most
}
