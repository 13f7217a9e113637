package mirror

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/sender"
)

// unfollowable is a service that can be asked for everything but its changes.
type unfollowable struct{ owner.Service }

func (unfollowable) Describe(context.Context) (owner.Description, error) {
	return owner.Description{Service: "foos", Kinds: []owner.Kind{{Name: "Foo", Changes: true}}}, nil
}

func (unfollowable) Changes(context.Context, string, time.Duration) (owner.Changes, error) {
	return owner.Changes{}, errors.New("404 Not Found")
}

func TestFollowChanges_ComparesOnceAlthoughTheFirstCallFails(t *testing.T) {
	m := newMirror(Config{
		Owners: map[string]owner.Service{"foos": unfollowable{}}, Sender: &sender.Sender{}, Logger: zap.NewNop(),
	}, "foos", "m0-")
	m.kinds = []*kind.Kind{{Kind: &descriptor.Kind{Name: "Foo"}}}
	for _, want := range []int{1, 0} {
		if err := m.followChanges(t.Context()); err == nil {
			t.Error("the changes are followed")
		}
		if n := len(m.compareNow); n != want {
			t.Errorf("%d comparisons are requested, want %d", n, want)
		}
		select {
		case <-m.compareNow:
		default:
		}
	}
}
