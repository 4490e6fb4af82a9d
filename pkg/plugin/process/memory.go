// Package process has the exit codes and errors, the memory limit and the version of the program.
package process

import (
	"os"
	"runtime/debug"
	"sync"

	"github.com/kubectl-mutate/kubectl-mutate/pkg/engine/limit"
)

// The values of GOGC, besides the headroom.
const (
	garbage        = 100
	garbageOfWrite = 75 // besides the changes, which are held until they are written
)

// The headrooms count as live for the garbage collector, which therefore runs less often. They are never
// touched, so that they are not resident. More of them takes less time, and more memory than a run may have.
//
//nolint:gochecknoglobals // of the process, once for all runs in it
var (
	headroomOfAll   = sync.OnceValue(func() []byte { return make([]byte, 48<<20) })
	headroomOfFiles = sync.OnceValue(func() []byte { return make([]byte, 64<<20) }) // besides that of all
)

// addHeadroom adds a headroom, unless the memory limit, which counts it, is small.
func addHeadroom(room func() []byte) {
	if debug.SetMemoryLimit(-1) >= 1<<30 {
		room()
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
func SaveMemory() { setGarbage(garbageOfWrite) }

// SetMemoryLimit sets the soft memory limit of the process and returns it in bytes.
func SetMemoryLimit() int64 {
	most := limit.Memory(machine(), container())
	debug.SetMemoryLimit(most)
	setGarbage(garbage)
	addHeadroom(headroomOfAll)
	return most
}
