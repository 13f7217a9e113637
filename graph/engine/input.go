package engine

import "fmt"

// InputError says what is wrong with a value of a request. Its text speaks of
// the input alone, so it may be shown to who sent it.
type InputError struct{ Message string }

func (e *InputError) Error() string { return e.Message }

// jsonKind names what a value is in the words of JSON.
func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a Boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// refuseInput returns an [*InputError].
func refuseInput(format string, args ...any) error {
	return &InputError{Message: fmt.Sprintf(format, args...)}
}
