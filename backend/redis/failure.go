package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/internal/wait"
)

// patience is how long a call is repeated if it certainly has changed nothing.
const patience = time.Second

// refused reports whether the server has answered that it did not execute the call, but may do so soon: it is starting,
// it is no longer a primary, or the slot is being moved.
func refused(err error) bool {
	return elsewhere(err) ||
		hasPrefix(err, "LOADING", "READONLY", "MASTERDOWN", "BUSY", "NOREPLICAS", "UNBLOCKED", "max number of clients")
}

// elsewhere reports whether the server has answered that it does not have the slot.
func elsewhere(err error) bool { return hasPrefix(err, "MOVED", "ASK", "CLUSTERDOWN", "TRYAGAIN") }

func hasPrefix(err error, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return goredis.HasErrorPrefix(err, p) })
}

// unsent reports whether the call was never sent because there was no connection.
func unsent(err error) bool {
	var r *refusal
	var op *net.OpError
	return errors.As(err, &r) || errors.Is(err, goredis.ErrPoolTimeout) || errors.Is(err, goredis.ErrClosed) ||
		errors.As(err, &op) && op.Op == "dial"
}

// replied reports whether the error is an answer of the server.
func replied(err error) bool {
	var re goredis.Error
	return errors.As(err, &re) && !errors.Is(err, goredis.Nil)
}

// final reports whether a retry would certainly fail as well.
func final(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.final
}

// failed converts the error of a call that has changed nothing to an error of package backend.
func failed(ctx context.Context, operation string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, goredis.ErrClosed):
		return backend.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case final(err), errors.Is(err, backend.ErrUnavailable):
		return fmt.Errorf("%s: %w", operation, err)
	}
	return fmt.Errorf("%s: %w: %w", operation, backend.ErrUnavailable, err)
}

// repetitions returns the pauses before repetitions of a call.
func repetitions() *wait.Backoff {
	return &wait.Backoff{Least: 10 * time.Millisecond, Most: 300 * time.Millisecond}
}

// pause waits before the next repetition. It returns false if there is no time left for one.
func pause(ctx context.Context, backoff *wait.Backoff, until time.Time) bool {
	d := backoff.Next()
	return !time.Now().Add(d).After(until) && wait.For(ctx, d)
}

// read makes a call that may be repeated. If the server or the connection fails, it repeats the call for a short time.
func (s *Store) read(ctx context.Context, operation string, call func(context.Context, *session) error) error {
	until, backoff := time.Now().Add(patience), repetitions()
	for {
		ses, err := s.core.acquire(s)
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, s.core.cfg.Timeout)
		err = call(limited, ses)
		cancel()
		if !contractual(err) && ctx.Err() == nil {
			ses.locate(err)
		}
		ses.inflight.Done()
		switch {
		case err == nil:
			return nil
		case s.isClosed():
			return backend.ErrClosed
		case contractual(err):
			return err
		case ctx.Err() != nil, final(err), errors.As(err, new(*NoReplicaError)), !pause(ctx, backoff, until):
			return failed(ctx, operation, err)
		}
	}
}

// contractual reports whether an error is already an error of package backend.
func contractual(err error) bool {
	contract := []error{
		backend.ErrUnreadable, backend.ErrPositionExpired, backend.ErrInvalid, backend.ErrFormat, backend.ErrClosed,
		backend.ErrNoSpace,
	}
	return slices.ContainsFunc(contract, func(is error) bool { return errors.Is(err, is) })
}
