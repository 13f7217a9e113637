package gateway

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

const (
	// leastIndex is the minimum size of an index, in bytes.
	leastIndex = 1 << 20
	// indexShare is the divisor that gives the default size of the index from the memory of the process.
	indexShare = 4
)

// indexMemory returns the maximum size of the index in bytes: the setting, or by default a share of the process's
// memory. A negative result means no index.
func indexMemory(setting int64) int64 {
	switch {
	case setting >= leastIndex:
		return setting
	case setting != config.IndexAuto:
		return -1
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return max(limit/indexShare, leastIndex)
	}
	limit, err := memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)()
	if err != nil || limit > math.MaxInt64 {
		return 0 // the service's default
	}
	return max(int64(limit/indexShare), leastIndex)
}

// answersShare is the divisor that gives the maximum size of kept answers from the size of the index.
const answersShare = 8

// answersMemory returns the maximum size of kept answers in bytes: the setting, but at most a share of the size of the
// index. A negative result means that no answers are kept.
func answersMemory(setting, index int64) int64 {
	switch {
	case setting == 0, index < 0: // without an index no answer is kept
		return -1
	case index == 0: // the service's default
		return setting
	}
	return min(setting, index/answersShare)
}
