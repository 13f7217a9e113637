package bolt

import "time"

// pace is what decides how long a group waits for more calls. The zero value is that
// before the first group.
type pace struct {
	// calls of the last group.
	calls int
	// behind are those that were queued when that was on disk.
	behind int
	took   time.Duration
	// groups counts those that were large enough for a long wait. trust grows with each
	// long wait that brought the expected calls, and shrinks with each that did not.
	groups, trust int
	// turns counts groups of one call with others behind it.
	turns int
}

// Bounds of how long a group may wait for more calls.
const (
	maxGather     = 2 * time.Millisecond
	maxLongGather = 8 * time.Millisecond
	// longGroup is how many calls a group expects that may wait long. Every longTry-th such
	// group does so to find out whether it is worth it.
	longGroup = 24
	longTry   = 16
	maxTrust  = 8
	// turnTry is how often a group of one call with others behind it is followed by a wait.
	turnTry = 8
)

// shares says whether a group should wait for more calls. Two writers that keep coming back
// may take turns for ever: each is behind when the other's call is on disk. One wait is enough
// for them to share every group from then on. If they come only once, such a wait is in vain,
// so there are few.
func (p *pace) shares() bool {
	if p.calls > 1 || p.behind == 0 {
		return p.calls > 1
	}
	p.turns++
	return p.turns%turnTry == 0
}

// limit is how long a group may wait until as many calls are queued as it wants: no longer
// than the last group took, or twice as long while such long waits bring these calls. They
// do if the same writers come back and only need time for it, because the machine is busy:
// then the wait ends with the last of them, and none has to wait for another group. They do
// not if other writers keep coming: then the longer a group waits, the more it wants.
func (p *pace) limit(want int) (limit time.Duration, long bool) {
	if want >= longGroup {
		p.groups++
		long = p.trust > 0 || p.groups%longTry == 0
	}
	if long {
		return min(2*p.took, maxLongGather), true
	}
	return min(p.took, maxGather), false
}

// learn notes whether a long wait brought the calls that were wanted.
func (p *pace) learn(came bool) {
	if came {
		p.trust = min(p.trust+2, maxTrust)
	} else {
		p.trust = max(p.trust-1, 0)
	}
}
