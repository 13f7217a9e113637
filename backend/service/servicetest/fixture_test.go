package servicetest_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestSetupIndexed_ServesWhatWasCreated(t *testing.T) {
	f := servicetest.SetupIndexed(t)
	made := f.CreateWidget("a", `{"title":"A"}`)
	if got := f.Stored("a"); got == nil || got.Revision != made.Resource.Stored.Revision {
		t.Errorf("the store has %v", got)
	}
	if s := f.Index().Stats(); s.Served != s.Kinds {
		t.Errorf("the index serves %d of %d kinds", s.Served, s.Kinds)
	}
}
