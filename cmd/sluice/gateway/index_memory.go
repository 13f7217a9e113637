package gateway

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

const (
	// leastIndex is the smallest index that is worth having, in bytes. A smaller setting means no index.
	leastIndex = 1 << 20
	// indexShare is the divisor of the default: the index may use 1/indexShare of the memory of the process.
	indexShare = 4
)

// indexMemory returns the maximum size of the index in bytes: the setting, or by default a share of the memory that the
// process may use. A negative result means no index. 0 means the default of the service, because the memory of the
// process is not known.
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

// answersShare limits the kept answers to an eighth of the maximum size of the index.
const answersShare = 8

// answersMemory returns the maximum size of kept answers in bytes. It is the setting, but at most a share of index, the
// maximum size of the index. A negative result means that no answers are kept.
func answersMemory(setting, index int64) int64 {
	switch {
	case setting == 0, index < 0: // without an index no answer is kept
		return -1
	case index == 0: // the service's default
		return setting
	}
	return min(setting, index/answersShare)
}
