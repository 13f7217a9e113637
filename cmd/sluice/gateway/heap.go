package gateway

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// heapReserve is the size in bytes to which the heap may grow before garbage is collected for the first time. Without
// it, a gateway with little data would collect a hundred times per second, and spend a quarter of its time on that when
// it reads a few megabytes at a time.
const heapReserve = 64 << 20

// returnEvery is the time after which free memory is returned to the system. Otherwise Go would keep as much memory as
// the heap once needed. Each return costs one garbage collection.
const returnEvery = time.Minute

// reserveHeap allocates memory that is never touched. That delays garbage collections and uses no physical memory.
// release frees the memory. If GOGC or GOMEMLIMIT is set, reserveHeap allocates nothing.
func reserveHeap() (release func()) {
	if heapIsSet() {
		return func() {}
	}
	reserve := make([]byte, heapReserve) // Go lets the heap grow to twice what is in use
	return func() { runtime.KeepAlive(reserve) }
}

// returnMemory returns free memory to the system from time to time, until ctx ends.
func returnMemory(ctx context.Context) error {
	tick := time.NewTicker(returnEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if !heapIsSet() {
				debug.FreeOSMemory()
			}
		}
	}
}

// heapIsSet reports whether GOGC or a memory limit is set.
func heapIsSet() bool { return os.Getenv("GOGC") != "" || debug.SetMemoryLimit(-1) != math.MaxInt64 }
