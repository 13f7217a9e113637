package fence_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/cmd/sluice/fence"
)

// enter begins a write that has to be let in.
func enter(t *testing.T, g *fence.Gate, kind string) (leave func()) {
	t.Helper()
	leave, ok := g.Enter(kind)
	if !ok {
		t.Fatalf("no %s is let in", kind)
	}
	return leave
}

func TestOlderGatesAreClosedOnceTheirWritesHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fence.Fence
		older, served, next := f.NewGate(), f.NewGate(), f.NewGate()
		leave := []func(){enter(t, older, "Shelf"), enter(t, served, "Shelf")}
		other := enter(t, served, "Box")
		closed := make(chan error, 1)
		go func() {
			_, err := next.Close(t.Context(), []string{"Shelf"})
			closed <- err
		}()
		for _, one := range leave {
			synctest.Wait()
			select {
			case <-closed:
				t.Fatal("it is closed while a write is under way")
			default:
			}
			for name, g := range map[string]*fence.Gate{"older": older, "served": served} {
				if _, ok := g.Enter("Shelf"); ok {
					t.Errorf("the %s gate lets a write in", name)
				}
			}
			one()
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		other()
		enter(t, served, "Box")()
		enter(t, next, "Shelf")()
		enter(t, f.NewGate(), "Shelf")()
		if _, ok := older.Enter("Shelf"); ok {
			t.Error("an older gate is open again")
		}
	})
}

func TestAGateThatIsReopenedIsAsItWas(t *testing.T) {
	var f fence.Fence
	older, served := f.NewGate(), f.NewGate()
	if _, err := served.Close(t.Context(), []string{"Shelf"}); err != nil {
		t.Fatal(err)
	}
	reopen, err := f.NewGate().Close(t.Context(), []string{"Shelf", "Box"})
	if err != nil {
		t.Fatal(err)
	}
	reopen()
	enter(t, served, "Shelf")()
	enter(t, older, "Box")()
	if _, ok := older.Enter("Shelf"); ok {
		t.Error("what was closed before is open")
	}
}

func TestAWriteThatDoesNotEndLeavesTheGatesOpen(t *testing.T) {
	var f fence.Fence
	served := f.NewGate()
	leave := enter(t, served, "Shelf")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.NewGate().Close(ctx, []string{"Shelf"}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "writes of Shelf do not end") {
		t.Errorf("it says %v", err)
	}
	enter(t, served, "Shelf")()
	leave()
}
