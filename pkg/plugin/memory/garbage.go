package memory

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// roomy is the room for garbage beside what is kept, or one and a half times what is kept where that is less. For
// what is kept beyond roomy, the collector leaves a third.
const roomy = 56 << 20

// BoundGarbage has the garbage collector leave the less room for garbage the more is kept, and give
// memory back that is needed no more, unless GOGC is set. Further calls do nothing.
func BoundGarbage() {
	if os.Getenv("GOGC") == "" {
		bound.Do(func() { afterCollection(0) })
	}
}

var bound sync.Once //nolint:gochecknoglobals // there is one garbage collector

// afterCollection is called when a collection has found that nothing refers to what it has made.
// Most is what was kept at most before it, since memory was given back.
func afterCollection(most uint64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	kept := sample[0].Value.Uint64()
	debug.SetGCPercent(percent(kept))
	if most = max(most, kept); most > roomy && kept < most/3*2 {
		debug.FreeOSMemory() // which values of other sizes could not use
		most = kept
	}
	runtime.AddCleanup(new(struct{ _ *int }), afterCollection, most)
}

// percent is the room for garbage beside what is kept, in percent of that.
func percent(kept uint64) int {
	if kept <= roomy {
		return int(min(150, roomy*100/max(kept, 1))) //nolint:gosec // 150 at most
	}
	return int((roomy + (kept-roomy)/3) * 100 / kept) //nolint:gosec // less than 100
}
