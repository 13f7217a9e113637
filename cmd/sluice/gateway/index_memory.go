package gateway

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

const (
	// leastIndex is the smallest index, in bytes.
	leastIndex = 1 << 20
	// indexShare divides the process's memory: the index may use this part by default.
	indexShare = 4
)

// indexMemory returns how many bytes the index may use: the setting, or by default a
// share of the process's memory; negative for no index.
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

// answersShare divides the memory of the index: kept answers may use at most this part of
// it.
const answersShare = 8

// answersMemory returns how many bytes of answers are kept: the setting, but no more than a share of the memory of the
// index; negative for none.
func answersMemory(setting, index int64) int64 {
	switch {
	case setting == 0, index < 0: // without an index no answer is kept
		return -1
	case index == 0: // the service's default
		return setting
	}
	return min(setting, index/answersShare)
}
