package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/graph/client"
)

// writeError is an error of a request that writes. Where there is no answer it says
// whether the change may have been made, and a ^C is not told as the gateway's fault.
func writeError(ctx context.Context, err error, dry dryRun) error {
	var lost *client.UnansweredError
	unsure := errors.As(err, &lost) && lost.Sent && !bool(dry)
	switch {
	case lost != nil && ctx.Err() != nil && unsure:
		return errors.New("interrupted; the change may or may not have been made (look with sluice get before you repeat it)")
	case lost != nil:
		err = readError(ctx, err)
	}
	if unsure {
		return fmt.Errorf("%w; the change may or may not have been made (look with sluice get before you repeat it)", err)
	}
	return err
}

// applied is the error that says of a change that it was made, though not all of its
// answer could be given; nil for none.
func applied(err error) *client.Error {
	all := client.Errors{}
	if errors.As(err, &all) {
		for _, e := range all {
			if e.Extensions.Outcome == "APPLIED" {
				return e
			}
		}
	}
	return nil
}

// readError is an error of a request that a command makes before it writes.
func readError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.As(err, new(*client.UnansweredError)) {
		return errors.New("interrupted; nothing was changed")
	}
	return err
}

// unknown reports whether the gateway does not know who asks.
func unknown(err error) bool { return code(err) == "UNAUTHENTICATED" }
