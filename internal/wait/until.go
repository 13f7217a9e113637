package wait

import "context"

// Until returns what read returns, or the error of ctx once that has ended. A read that
// blocks in the kernel, of a named pipe that nobody writes to or of a terminal, is left behind.
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
