package change

// phase is what a stream does next. A stream begins in sendingMark, sendingState or following, and an error of Next
// ends it in each phase. "Then" lists the phases that may follow.
type phase int

const (
	// sendingMark sends IN_SYNC before everything else: the stream has begun without a cursor. Then: following.
	sendingMark phase = iota
	// sendingState sends a snapshot, whose end is IN_SYNC. Then: following. A stream that asked for snapshots returns
	// to this phase when the log no longer reaches back to where it is.
	sendingState
	// following sends what happens. Then: inTransition, or led.
	following
	// inTransition sends what a change of the caller's rights has added and removed. Then: following.
	inTransition
	// led sends nothing, because the leader of a group follows the changes; Poll returns ErrClosed. Then: failed if the
	// group ends, separated if the stream leaves it, sendingState if it leaves during the snapshot.
	led
	// separated begins to follow by itself, after the changes that the group has sent. Then: following.
	separated
	// failed returns the error with which the group has ended. Then: sendingState if the stream asked for snapshots and
	// the log no longer reaches back; else the stream has ended.
	failed
)

// phase returns what the stream does next. The first that applies.
func (c *Stream) phase() phase {
	switch {
	case c.mark != nil:
		return sendingMark
	case c.state != nil:
		return sendingState
	case !c.continueFrom.IsZero():
		return separated
	case c.ended != nil:
		return failed
	case c.transition != nil:
		return inTransition
	case c.watcher != nil:
		return following
	}
	return led
}
