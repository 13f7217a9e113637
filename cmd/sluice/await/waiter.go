// Package await waits until resources have a condition or a value, or are deleted.
package await

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// Waiter waits until resources reach their goals.
type Waiter struct {
	Std    terminal.Streams
	Client *client.Client
	// Timeout is the maximum time to wait for all resources together.
	Timeout time.Duration
}

// LastLookTime is the maximum time for the last look at all resources, after the timeout.
const LastLookTime = 2 * time.Second

// Wait waits until a resource reaches its goal, and returns nil then. If the deadline of ctx passes first, it reads the
// resource once more with the context late, which must end later than ctx. The error is for the user.
func (w *Waiter) Wait(ctx, late context.Context, s PendingGoal) error {
	s.state = "nothing is known of it"
	req := client.ChangesRequest{
		Kind:      s.Kind,
		Namespace: s.Namespace,
		Name:      s.Name,
		Snapshot:  true,
		Lost:      exit.ReportLost(w.Std),
	}
	for change, err := range w.Client.Changes(ctx, req) {
		if errors.Is(err, context.DeadlineExceeded) {
			if err = s.lastLook(late, w.Client); err == nil {
				err = fmt.Errorf("%s %s: timed out after %v waiting for %s: %s",
					s.Kind.Name, s.Name, w.Timeout.Round(time.Millisecond), s.Goal.Text, s.state)
			}
		} else if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted")
		} else if err == nil {
			err = s.observe(change)
		}
		switch {
		case errors.Is(err, errReached):
			return nil
		case errors.Is(err, errAbsent):
			return w.absent(late, s)
		case err != nil:
			return err
		}
	}
	return nil
}

// absent is called when the gateway does not return a resource. The resource is only known to be deleted if the caller
// may see it.
func (w *Waiter) absent(ctx context.Context, s PendingGoal) error {
	if s.Goal.Deleted {
		verbs, err := w.Client.Access(ctx, s.AccessTarget())
		if err != nil {
			return err
		}
		if !slices.Contains(verbs, "GET") {
			return s.hidden()
		}
	}
	if err := s.gone(); !errors.Is(err, errReached) {
		return err
	}
	return nil
}
