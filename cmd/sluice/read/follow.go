package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// follow calls the function each for every change, until the user stops it.
func follow(
	ctx context.Context,
	std terminal.Streams,
	c *client.Client,
	req client.ChangesRequest,
	each func(*client.Change) error,
) error {
	resets := 0
	req.Lost = exit.ReportLost(std)
	for change, err := range c.Changes(ctx, req) {
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			exit.Explain(std, "sluice", err)
			return exit.ErrReported
		}
		if change.Type == "RESET" {
			if resets++; resets > 1 || req.After != "" {
				_, _ = fmt.Fprintln(
					std.Err,
					"sluice: the gateway no longer has the changes since the last one shown; starting over from the present state",
				)
			}
		}
		if err := each(change); err != nil {
			return err
		}
	}
	return nil
}

// withLost returns a function that calls each for every change. If the caller may no longer see a resource, the change
// does not have it. The function then adds the metadata that was seen last.
func withLost(each func(*client.Change) error) func(*client.Change) error {
	seen := map[string]*client.Resource{} // by their ids
	return func(c *client.Change) error {
		switch {
		case c.Type == "RESET":
			clear(seen)
		case c.Type == "DELETED":
			if c.Resource == nil {
				c.Resource = seen[c.ResourceID]
			}
			delete(seen, c.ResourceID)
		case c.Resource != nil:
			seen[c.ResourceID] = &client.Resource{Kind: c.Resource.Kind, Metadata: c.Resource.Metadata}
		}
		return each(c)
	}
}
