package write

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// explainOf prints the errors about a resource. It adds the name of the resource if they do not have it.
func explainOf(std terminal.Streams, s resource.Ref, err error) {
	where := s.Kind.Name + " " + s.Name
	if strings.Contains(err.Error(), strconv.Quote(s.Name)) {
		where = "sluice"
	}
	exit.Explain(std, where, err)
}

// writeError returns the error of a write for the user. If there was no answer, the error states that the change may
// have been made. It also states whether the user has interrupted the command.
func writeError(ctx context.Context, err error, dry command.DryRun) error {
	var lost *client.UnansweredError
	unsure := errors.As(err, &lost) && lost.Sent && !bool(dry)
	switch {
	case lost != nil && ctx.Err() != nil && unsure:
		return errors.New("interrupted; the change may or may not have been made (look with sluice get before you repeat it)")
	case lost != nil:
		err = readError(ctx, err)
	}
	if unsure {
		return fmt.Errorf("%w; the change may or may not have been made (look with sluice get before you repeat it)",
			err)
	}
	return err
}

// appliedError returns the error of an answer that is incomplete although the change was made; nil if there is none.
func appliedError(err error) *client.Error {
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

// readError returns the error of a read before a write, for the user.
func readError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.As(err, new(*client.UnansweredError)) {
		return errors.New("interrupted; nothing was changed")
	}
	return err
}
