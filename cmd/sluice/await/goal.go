package await

import (
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

// Goal is a state of a resource for which the command wait waits.
type Goal struct {
	Text string
	// Deleted is set if the resource must be deleted.
	Deleted bool
	// Condition is the type of a condition that must have the given status; empty for another goal.
	Condition, status string
	// path is a path that must have the value, or any value if value is nil.
	path  *output.Path
	value *string
}

const goalForms = "condition=TYPE, condition=TYPE=STATUS, delete, jsonpath={PATH} and jsonpath={PATH}=VALUE are accepted"

func ParseGoal(text string) (Goal, error) {
	g := Goal{Text: text}
	form, rest, _ := strings.Cut(text, "=")
	switch {
	case text == "delete":
		g.Deleted = true
		return g, nil
	case form == "condition" && rest != "":
		var given bool
		g.Condition, g.status, given = strings.Cut(rest, "=")
		if !given {
			g.status = "True"
		}
		if g.Condition != "" && g.status != "" {
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

// reached reports whether a resource has reached the goal, and returns a description of its present state.
func (g Goal) reached(k client.Kind, r *client.Resource) (bool, string, error) {
	switch {
	case g.Deleted && r.Metadata.DeletionRequestedAt != nil:
		return false, "its deletion is requested and waits", nil
	case g.Deleted:
		return false, "it is there", nil
	case g.Condition != "":
		c := r.Condition(g.Condition)
		if c.Type == "" {
			return false, "it has no condition " + g.Condition, nil
		}
		is := c.Type + " is " + c.Status
		if c.Message != "" {
			is += ": " + c.Message
		}
		if c.ObservedGeneration > 0 && c.ObservedGeneration < r.Metadata.Generation {
			return false, fmt.Sprintf("%s, but that was reported for generation %d, and it has generation %d",
				is, c.ObservedGeneration, r.Metadata.Generation), nil
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
