package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// The room for garbage is half of what is kept, and at least scant: less would make the collector's share of the time grow with
// what is kept. Where LeaveRoom was called, it is three times as much of what is kept beyond scant, at most roomy, and then half of
// what is kept beyond roomy.
const (
	scant = 16 << 20
	roomy = 48 << 20
)

// BoundGarbage has the garbage collector leave the less room for garbage the more is kept, and give
// memory back that is needed no more, unless GOGC is set. Further calls do nothing.
func BoundGarbage() {
	if os.Getenv("GOGC") == "" {
		bound.Do(func() { afterCollection(0) })
	}
}

// LeaveRoom has the garbage collector leave more room, for a run on files alone: no server slows it down, so that
// it makes garbage faster.
func LeaveRoom() { spacious.Store(true) }

//nolint:gochecknoglobals // there is one garbage collector
var (
	bound    sync.Once
	spacious atomic.Bool
)

// GiveBack gives memory back that is needed no more, unless GOGC is set: after a phase that leaves much in pieces, between
// which larger values of the next phase would not fit. It takes as long as looking through all that is kept.
func GiveBack() {
	if os.Getenv("GOGC") == "" {
		debug.FreeOSMemory()
	}
}

// afterCollection is called when a collection has found that nothing refers to what it has made.
// Most is what was kept at most before it, since memory was given back.
func afterCollection(most uint64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	kept := sample[0].Value.Uint64()
	debug.SetGCPercent(percent(kept, spacious.Load()))
	if most = max(most, kept); most > roomy && kept < most/3*2 {
		debug.FreeOSMemory() // which values of other sizes could not use
		most = kept
	}
	runtime.AddCleanup(new(struct{ _ *int }), afterCollection, most)
}

// percent is the room for garbage beside what is kept, in percent of that.
func percent(kept uint64, spacious bool) int {
	kept = max(kept, 1<<20)
	room := max(kept/2, scant)
	if spacious && kept > scant { // a small run needs no more
		room = min(kept+2*(kept-scant), roomy)
		if kept > roomy {
			room += (kept - roomy) / 2
		}
	}
	return int(room * 100 / kept) //nolint:gosec // 2000 at most
}
