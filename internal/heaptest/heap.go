// Package heaptest measures the memory that values hold.
package heaptest

import "runtime"

// InUse returns the number of bytes of the heap that are in use after a garbage collection. It collects twice, since a
// [sync.Pool] keeps its values for one collection.
func InUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
