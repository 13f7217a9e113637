package change

import "github.com/sluicegw/sluice/backend"

// unfinished stands for the stamp of the rights in a cursor within a transition: no rights have it.
const unfinished = "unfinished"

// judgedError ends a stream that cannot go on since its caller's rights have changed.
type judgedError struct{}

func (judgedError) Error() string { return "the caller's rights have changed since the cursor" }

// Is makes the error one of an expired cursor.
func (judgedError) Is(target error) bool { return target == backend.ErrPositionExpired }

// Detail returns the text that is added to the caller's error.
func (judgedError) Detail() string { return "what you may see has changed since" }
