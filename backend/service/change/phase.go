package change

// phase is what a stream does next. A stream begins in sendingMark, sendingState or following, and an error of Next
// ends it in each phase.
type phase int

const (
	// sendingMark sends IN_SYNC before everything else: the stream has begun without a cursor. Next: following.
	sendingMark phase = iota
	// sendingState sends a snapshot, whose end is IN_SYNC. Next: following. A stream that asked for snapshots comes
	// back when it cannot go on where it is, because the log has expired.
	sendingState
	// following sends what happens. Next: inTransition, or led.
	following
	// inTransition sends what a change of the caller's rights has added and removed. Next: following.
	inTransition
	// led sends nothing, because the leader of a group follows the changes. Next: failed if the group ends, separated
	// if the stream leaves it, sendingState if that was before the end of the state.
	led
	// separated begins to follow by itself, after the changes that the group has sent. Next: following.
	separated
	// failed returns the error with which the group has ended. Next: sendingState if the stream asked for snapshots and
	// the log has expired; else the stream has ended.
	failed
)

// phase returns what the stream does next.
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
