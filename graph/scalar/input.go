package scalar

import "fmt"

// InputError says what is wrong with a value of a request. Its text speaks of
// the input alone, so it may be shown to who sent it.
type InputError struct{ Message string }

func (e *InputError) Error() string { return e.Message }

// Refuse returns an [*InputError].
func Refuse(format string, args ...any) error {
	return &InputError{Message: fmt.Sprintf(format, args...)}
}
