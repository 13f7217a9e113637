package driver_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/driver"
)

func TestRowsThatAnEventKeepsCanBeOwned(t *testing.T) {
	memory := []byte("old")
	before := &backend.Resource{Rows: []backend.Row{{Index: "i", Value: memory}}}
	after := &backend.Resource{Rows: []backend.Row{{Index: "i", Value: []byte("new")}}}
	w := driver.Write{Before: before, After: after, Event: backend.Event{Type: backend.Modified, Resource: after, RowsBefore: before.Rows}}
	w.OwnRows()
	copy(memory, "xxx")
	if got := string(w.Event.RowsBefore[0].Value); got != "old" {
		t.Errorf("the event has %q", got)
	}
	for _, none := range []driver.Write{{Before: before, After: after}, {After: after, Event: backend.Event{Type: backend.Added, Resource: after}}} {
		none.OwnRows()
		if none.Event.RowsBefore != nil {
			t.Errorf("%+v", none.Event)
		}
	}
}
