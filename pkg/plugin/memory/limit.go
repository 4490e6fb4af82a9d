package memory

import (
	"math"
	"os"
	"runtime/debug"
)

// share is the part of the machine's memory, in percent, that the limit of SetLimit is.
const share = 75

// SetLimit sets the soft memory limit of the process, above which it collects garbage more
// often: GOMEMLIMIT if it is set, else a share of the memory of the machine, of the control
// group or of the address space, whichever is the smallest.
func SetLimit() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return // the runtime has read it
	}
	if available := available(); available > 0 {
		debug.SetMemoryLimit(available / 100 * share)
	}
}

// Limit returns the soft memory limit; zero if there is none.
func Limit() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}
