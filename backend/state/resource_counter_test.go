package state_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/state"
)

func TestResourceCounter_CountsTheResourcesThatAreLeft(t *testing.T) {
	line := func(kind, name string) state.Line {
		return state.Line{Resource: &backend.Resource{Key: backend.Key{Kind: kind, Name: name}}}
	}
	var c state.ResourceCounter
	later, gone, again, unreadable := line("Net", "a"), line("Net", "b"), line("Net", "b"), line("Net", "c")
	later.Later = true
	gone.Later = true
	gone.Deleted = true
	again.Later = true
	unreadable.Unreadable = true
	for _, step := range []struct {
		name string
		l    state.Line
		want int
	}{
		{"a resource", line("Net", "a"), 1},
		{"another one", line("Net", "b"), 2},
		{"the values of a sensitive one", line("_sensitive.Secret", "s"), 2},
		{"a record of the gateways", line("_catalogue", "accepted"), 2},
		{"one that has changed", later, 2},
		{"one that was deleted", gone, 1},
		{"one that was created again", again, 2},
		{"one that could not be read", unreadable, 2},
	} {
		c.Add(&step.l)
		if got := c.Count(); got != step.want {
			t.Errorf("%s: %d, want %d", step.name, got, step.want)
		}
	}
}
