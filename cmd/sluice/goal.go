package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

// goal is the state that sluice wait waits for.
type goal struct {
	text string
	// deleted: the resource is gone.
	deleted bool
	// condition has the status; empty if another goal is meant.
	condition, status string
	// path has the value, or any if there is none.
	path  *output.Path
	value *string
}

const goalForms = "condition=TYPE, condition=TYPE=STATUS, delete, jsonpath={PATH} and jsonpath={PATH}=VALUE are accepted"

func parseGoal(text string) (goal, error) {
	g := goal{text: text}
	form, rest, _ := strings.Cut(text, "=")
	switch {
	case text == "delete":
		g.deleted = true
		return g, nil
	case form == "condition" && rest != "":
		var given bool
		if g.condition, g.status, given = strings.Cut(rest, "="); !given {
			g.status = "True"
		}
		if g.condition != "" && g.status != "" {
			return g, nil
		}
	case form == "jsonpath" && strings.HasPrefix(rest, "{"):
		end := strings.LastIndex(rest, "}=")
		if end >= 0 {
			value := rest[end+2:]
			g.value, rest = &value, rest[:end+1]
		}
		path, err := output.ParsePath(rest)
		if err != nil {
			return g, fmt.Errorf("for: %w", err)
		}
		g.path = &path
		return g, nil
	}
	return g, fmt.Errorf("for: %q; %s", text, goalForms)
}

// reached reports whether a resource has the wanted state, and describes its present one.
func (g goal) reached(k client.Kind, r *client.Resource) (bool, string, error) {
	switch {
	case g.deleted && r.Metadata.DeletionRequestedAt != nil:
		return false, "its deletion is requested and waits", nil
	case g.deleted:
		return false, "it is there", nil
	case g.condition != "":
		c := r.Condition(g.condition)
		if c.Type == "" {
			return false, "it has no condition " + g.condition, nil
		}
		is := c.Type + " is " + c.Status
		if c.Message != "" {
			is += ": " + c.Message
		}
		if c.ObservedGeneration > 0 && c.ObservedGeneration < r.Metadata.Generation {
			return false, fmt.Sprintf("%s, but that was reported for generation %d, and it has generation %d", is, c.ObservedGeneration, r.Metadata.Generation), nil
		}
		return c.Status == g.status, is, nil
	}
	tree, err := output.Tree(k, r)
	if err != nil {
		return false, "", err
	}
	values, err := g.path.Values(tree)
	if err != nil {
		return false, "", err
	}
	if len(values) == 0 {
		return false, "there is no value", nil
	}
	text, err := g.path.Text(tree)
	return g.value == nil || text == *g.value, "the value is " + text, err
}

// errReached ends the stream of a resource that has reached its goal.
var errReached = errors.New("reached")

// errAbsent ends the stream of a resource that does not exist, or that the caller may not see.
var errAbsent = errors.New("absent")

// pendingGoal is a goal that one resource has not reached yet.
type pendingGoal struct {
	goal goal
	subject
	// uid of the resource whose deletion is waited for; empty if there was none.
	uid string
	// state describes the resource to people.
	state   string
	present bool
}

// observe judges a change; it returns errReached if the goal is reached.
func (s *pendingGoal) observe(c *client.Change) error {
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
	return s.judge(c.Resource)
}

// lastLook reads the resource once more when the time is over. It returns nil if it is not as wanted, or cannot be read.
func (s *pendingGoal) lastLook(ctx context.Context, from *client.Client) error {
	switch r, err := from.Get(ctx, s.kind, s.namespace, s.name, ""); {
	case err == nil && r == nil:
		return errAbsent
	case err == nil:
		return s.judge(r)
	}
	return nil
}

// gone judges that the resource does not exist.
func (s *pendingGoal) gone() error {
	if s.goal.deleted {
		return errReached
	}
	return s.absent()
}

// hidden returns the error that the caller may not see the resource.
func (s *pendingGoal) hidden() error {
	return fmt.Errorf("%s %q cannot be seen with your rights%s, so whether it exists is not known", s.kind.Name, s.name, in(s.namespace))
}

func (s *pendingGoal) judge(r *client.Resource) error {
	if s.goal.deleted && s.uid != r.Metadata.UID {
		return errReached // it is another one of that name
	}
	s.present = true
	done, now, err := s.goal.reached(s.kind, r)
	if s.state = now; done {
		return errReached
	}
	return err
}
