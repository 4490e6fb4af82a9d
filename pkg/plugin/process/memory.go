// Package process has the exit codes and errors, the memory limit and the version of the program.
package process

import (
	"os"
	"runtime/debug"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// The values of GOGC.
const (
	garbage        = 100 // besides the headroom
	garbageOfWrite = 125 // besides the changes, which are held until they are written
)

// The sizes of the headroom, in bytes: more takes less time, and more memory than a run may have.
const (
	headroomOfAll   = 48 << 20
	headroomOfFiles = 64 << 20 // besides that of all
)

// headroom counts as live for the garbage collector, which therefore runs less often. None of it is ever
// touched, so that it is not resident.
//
//nolint:gochecknoglobals // of the process
var headroom [][]byte

// addHeadroom adds to the headroom, unless the memory limit, which counts it, is small.
func addHeadroom(size int) {
	if debug.SetMemoryLimit(-1) >= 16*int64(size) {
		headroom = append(headroom, make([]byte, size))
	}
}

func setGarbage(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// SaveTime takes memory to collect garbage less often, for a run on files.
func SaveTime() { addHeadroom(headroomOfFiles) }

// SaveMemory takes time to collect garbage more often, for a run that holds all its changes.
func SaveMemory() {
	headroom = nil
	setGarbage(garbageOfWrite)
}

// SetMemoryLimit sets the soft memory limit of the process and returns it in bytes.
func SetMemoryLimit() int64 {
	most := limit.Memory(machine(), container())
	debug.SetMemoryLimit(most)
	setGarbage(garbage)
	addHeadroom(headroomOfAll)
	return most
}
