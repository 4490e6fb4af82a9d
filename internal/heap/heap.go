// Package heap tells tests what is kept in memory.
package heap

import "runtime"

// InUse returns how many bytes of the heap are in use once garbage has been collected.
func InUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools let go of what they have in the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) // no machine has that much
}
