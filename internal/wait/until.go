package wait

import "context"

// Until calls read and returns its result. If ctx ends first, it returns the error of ctx, and read continues in the
// background. For example, read may be blocked by a terminal, or by a named pipe to which nobody writes.
func Until[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
