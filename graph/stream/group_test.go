package stream_test

import (
	"testing"

	"github.com/sluicegw/sluice/graph/stream"
)

func TestAGroupEndsAllThatHaveNotLeft(t *testing.T) {
	g := stream.NewGroup()
	ended := map[string]int{}
	join := func(name string) func() { return g.Join(func() { ended[name]++ }) }
	join("stays")
	leave := join("leaves")
	leave()
	leave()
	if g.Len() != 1 {
		t.Errorf("%d are open", g.Len())
	}
	g.End()
	g.End()
	join("comes late")()
	if ended["stays"] != 1 || ended["leaves"] != 0 || ended["comes late"] != 1 || g.Len() != 0 {
		t.Errorf("ended: %v, open: %d", ended, g.Len())
	}
}

func TestNoGroupNeverEnds(t *testing.T) {
	var g *stream.Group
	g.Join(func() { t.Error("it ended") })()
	g.End()
	if g.Len() != 0 {
		t.Error("it has streams")
	}
}
