package change

// phase is what a stream does next.
//
//	snapshot: true       without a cursor       with a cursor
//	      |                     |                     |
//	      v                     v                     v
//	sendingState          sendingMark ---------> following <--------> inTransition
//	  ^   |   after the state                     |     ^   rights change
//	  |   +---------------------------------------+---> |
//	  |                                           |     |
//	  |         joins a group (Join, HandOver)    v     | leaves it for its rights
//	  |                                          led ---+----> separated
//	  |   the log has expired, or it leaves       |
//	  +-------------------------------------------+----> failed
//
// In each phase, an error of Next ends the stream.
type phase int

const (
	// sendingMark sends IN_SYNC, which comes before everything else.
	sendingMark phase = iota
	// sendingState sends a snapshot, of which IN_SYNC is the end.
	sendingState
	// separated begins to follow the changes by itself, after those that the group has sent.
	separated
	// failed returns the error with which the group has ended, or sends the state again for it.
	failed
	// inTransition sends what the change of the caller's rights has added and removed.
	inTransition
	// following sends what happens.
	following
	// led sends nothing: the leader of a group follows the changes.
	led
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
