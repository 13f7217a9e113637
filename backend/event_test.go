package backend_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend"
)

func TestEvent_Type(t *testing.T) {
	for e, want := range map[backend.EventType]string{backend.Added: "ADDED", backend.Modified: "MODIFIED", backend.Deleted: "DELETED", 0: "UNKNOWN"} {
		if e.String() != want {
			t.Errorf("%d is %q", e, e)
		}
	}
}
