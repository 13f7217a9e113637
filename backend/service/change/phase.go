package change

// phase determines what the next call of Next or Poll does. A stream begins in sendingMark, sendingState or following.
// In any phase, an error of Next ends the stream. "Then" names the phases that may follow.
type phase int

const (
	// sendingMark sends the first IN_SYNC of a stream that begins without a cursor. Then: following.
	sendingMark phase = iota
	// sendingState sends a snapshot, and IN_SYNC at its end. Then: following. A stream with Request.Snapshot returns to
	// this phase when the log no longer reaches back to its position.
	sendingState
	// following sends changes as they happen. Then: inTransition, or led.
	following
	// inTransition sends the resources that a change of the caller's rights has added and removed. Then: following.
	inTransition
	// led sends nothing, because the leader of a group sends the changes; Poll returns ErrClosed. Then: failed if the
	// group ends with an error, separated if the stream leaves the group, sendingState if it leaves during the
	// snapshot.
	led
	// separated resumes the log after the last change that the group has sent. Then: following.
	separated
	// failed returns the error with which the group has ended. Then: sendingState, if the stream has Request.Snapshot
	// and the log no longer reaches back; otherwise the stream has ended.
	failed
)

// phase returns the phase of the stream. If the conditions of several phases are met, the first case wins.
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
