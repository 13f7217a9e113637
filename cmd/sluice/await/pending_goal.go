package await

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
)

// errReached ends the stream because the resource has reached its goal.
var errReached = errors.New("reached")

// errAbsent ends the stream because the resource does not exist, or the caller may not see it.
var errAbsent = errors.New("absent")

// PendingGoal is a goal that a resource has not reached yet.
type PendingGoal struct {
	Goal Goal
	resource.Ref
	// UID is the uid of the resource that must be deleted; empty if there was none.
	UID string
	// state describes the present state of the resource for people.
	state   string
	present bool
}

// observe processes a change. It returns errReached if the goal is reached.
func (s *PendingGoal) observe(c *client.Change) error {
	switch {
	case c.Type == "RESET":
		s.present = false
	case c.Type == "IN_SYNC" && !s.present:
		return errAbsent
	case c.Type == "DELETED" && c.Revision == "": // nothing but the caller's rights has changed
		return s.hidden()
	case c.Type == "DELETED":
		return s.gone()
	}
	if c.Resource == nil {
		return nil
	}
	return s.check(c.Resource)
}

// lastLook reads the resource once more after the timeout. It returns errReached if the goal is reached, errAbsent if
// the gateway returns no resource, and another error if the goal cannot be evaluated. It returns nil if the goal is not
// reached, or if the request fails.
func (s *PendingGoal) lastLook(ctx context.Context, from *client.Client) error {
	switch r, err := from.Get(ctx, s.Kind, s.Namespace, s.Name, ""); {
	case err == nil && r == nil:
		return errAbsent
	case err == nil:
		return s.check(r)
	}
	return nil
}

// gone is called when the resource does not exist. It returns errReached if that is the goal, otherwise an error for
// the user.
func (s *PendingGoal) gone() error {
	if s.Goal.Deleted {
		return errReached
	}
	return s.Absent()
}

// hidden returns the error for a resource that the caller may not see, so that its state is not known.
func (s *PendingGoal) hidden() error {
	return fmt.Errorf("%s %q cannot be seen with your rights%s, so whether it exists is not known",
		s.Kind.Name, s.Name, resource.InNamespace(s.Namespace))
}

func (s *PendingGoal) check(r *client.Resource) error {
	if s.Goal.Deleted && s.UID != r.Metadata.UID {
		return errReached // it is another resource with the same name
	}
	s.present = true
	done, now, err := s.Goal.reached(s.Kind, r)
	s.state = now
	if done {
		return errReached
	}
	return err
}
