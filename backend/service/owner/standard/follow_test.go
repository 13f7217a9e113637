package standard

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
)

func TestFeed_AStreamThatBeginsLateExpiresEarlierPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		soon := make(chan struct{})
		f := &feed{
			epoch: "e", opened: time.Now(), begun: []chan struct{}{late, soon}, over: make(chan struct{}),
			changed: make(chan struct{}),
		}
		f.begin(soon)()
		if err := f.settle(t.Context()); err != nil || time.Since(f.opened) != settleTime {
			t.Fatal(err, time.Since(f.opened))
		}
		position := f.position()
		f.add(backend.Key{Kind: "Foo", Name: "a"})
		if out, _ := f.after(position); out.Expired || len(out.Keys) != 1 {
			t.Errorf("%+v", out)
		}
		begin := f.begin(late)
		begin()
		begin()
		if out, _ := f.after(position); !out.Expired {
			t.Errorf("%+v", out)
		}
		if out, _ := f.after(f.position()); out.Expired {
			t.Errorf("%+v", out)
		}
		if err := f.settle(t.Context()); err != nil || time.Since(f.opened) != settleTime {
			t.Error("it waits again", err)
		}
	})
}
