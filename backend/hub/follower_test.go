package hub_test

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
)

// notes is a follower that notes what it is told.
type notes struct {
	mu  sync.Mutex
	all []string
	// kept are the deliveries' own events, and copies are as they were.
	kept   [][]backend.Event
	copies [][]backend.Event
}

func (n *notes) Begin(at backend.Position) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all = append(n.all, "begin"); at.IsZero() {
		n.all[len(n.all)-1] = "end"
	}
}

func (n *notes) Deliver(d backend.Delivery) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept, n.copies = append(n.kept, d.Events), append(n.copies, slices.Clone(d.Events))
	for i := range d.Events {
		n.all = append(n.all, d.Events[i].Resource.Name)
	}
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.all, " ")
}

func TestFollower_AFollowerHearsOfEverythingBeforeAnySubscriber(t *testing.T) {
	followed := &notes{}
	inBubble(t, hub.Config{}, func(f *fixture) {
		f.write(0, "before")
		synctest.Wait()
		remove := f.AddFollower(followed)
		w := f.live(hub.Watch{})
		defer w.Close()
		for _, name := range []string{"a", "b", "c"} {
			f.write(1, name)
			f.next(w)
			if got := followed.String(); !strings.HasSuffix(got, name) {
				f.Errorf("a subscriber has %s, the follower has %q", name, got)
			}
		}
		f.store.lose(1, "unseen")
		f.write(0, "d")
		synctest.Wait()
		if got := followed.String(); got != "begin a b c begin d" && got != "begin a b c d begin" {
			f.Errorf("it was told %q", got)
		}
		left := &notes{}
		f.AddFollower(left)()
		f.write(0, "e")
		synctest.Wait()
		if got := left.String(); got != "begin" {
			f.Errorf("who has left was told %q", got)
		}
		f.stop()
		if got := followed.String(); !strings.HasSuffix(got, "e end") {
			f.Errorf("at the end it was told %q", got)
		}
		remove()
		if !reflect.DeepEqual(followed.kept, followed.copies) {
			f.Error("events were changed after they were delivered")
		}
	})
}
