package stream_test

import (
	"testing"

	"github.com/sluicegw/sluice/graph/stream"
)

func TestSet_ASetEndsAllThatHaveNotLeft(t *testing.T) {
	set := stream.NewSet()
	ended := map[string]int{}
	join := func(name string) func() { return set.Join(func() { ended[name]++ }, false) }
	join("stays")
	leave := join("leaves")
	leave()
	leave()
	set.Join(func() { ended["shared"]++ }, true)
	if set.Len() != 1 {
		t.Errorf("%d are open", set.Len())
	}
	set.End()
	set.End()
	join("comes late")()
	if ended["stays"] != 1 || ended["leaves"] != 0 || ended["comes late"] != 1 || ended["shared"] != 1 || set.Len() != 0 {
		t.Errorf("ended: %v, open: %d", ended, set.Len())
	}
}
