package gateway

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// heapReserve is how much the heap grows, in bytes, before garbage is collected
// for the first time. A gateway that holds little would collect a hundred times a
// second: reads of a few megabytes each would be a quarter garbage collection.
const heapReserve = 64 << 20

// returnEvery is how often free memory is returned to the operating system. By itself Go keeps as much as
// the heap has grown to; this costs a collection.
const returnEvery = time.Minute

// reserveHeap allocates memory that is never touched: it counts for the pace of the collector,
// but takes no memory. release gives it up. There is no reserve if GOGC or GOMEMLIMIT is set.
func reserveHeap() (release func()) {
	if heapIsSet() {
		return func() {}
	}
	reserve := make([]byte, heapReserve) // Go lets the heap grow to twice what is in use
	return func() { runtime.KeepAlive(reserve) }
}

// returnMemory returns free memory to the operating system now and then, until ctx ends.
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
