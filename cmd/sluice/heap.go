package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

// heapReserve is how much the heap grows, in bytes, before garbage is collected
// for the first time. A gateway that holds little would collect a hundred times a
// second: reads of a few megabytes each would be a quarter garbage collection.
const heapReserve = 64 << 20

// heapGrowth is how much the heap may grow, in percent of what is in use, before
// garbage is collected. Each collection visits all resources that are kept in memory: with
// Go's default, 100, an update costs some 3 % more; 200 gains nothing on most machines.
const heapGrowth = 150

// reserveHeap returns memory that is never touched, so that it takes room in the
// collector's account alone, and what gives it up. Who sets GOGC or GOMEMLIMIT
// has decided otherwise.
func reserveHeap() (release func()) {
	if os.Getenv("GOGC") != "" || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	before := debug.SetGCPercent(heapGrowth)
	reserve := make([]byte, heapReserve*100/heapGrowth)
	return func() {
		debug.SetGCPercent(before)
		runtime.KeepAlive(reserve)
	}
}
