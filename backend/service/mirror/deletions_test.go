package mirror

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDeletions_AreRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deletions
		key := keys("a")[0]
		before := time.Now()
		time.Sleep(time.Second)
		d.note(key)
		time.Sleep(time.Second)
		if !d.since(key, before) || d.since(key, time.Now()) || d.since(keys("b")[0], before) {
			t.Error("it is not told when the record was deleted")
		}
		time.Sleep(keepDeletions)
		d.note(keys("b")[0])
		if len(d.at) != 1 {
			t.Errorf("%d are remembered", len(d.at))
		}
	})
}
