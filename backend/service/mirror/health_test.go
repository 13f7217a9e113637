package mirror

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

func TestHealth_TheLagIsThatOfTheKindThatWasNotComparedForLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &kind.Kind{Kind: &descriptor.Kind{Name: "A"}}
		c := &kind.Kind{Kind: &descriptor.Kind{Name: "C"}}
		m := &Mirror{looks: newQueue(), kinds: []*kind.Kind{a, c}, health: health{compared: map[string]time.Time{}}}
		m.noteCompared(c, time.Now())
		if m.state().Filled {
			t.Error("a kind was not compared yet")
		}
		m.noteCompared(a, time.Now())
		time.Sleep(time.Hour)
		m.noteCompared(c, time.Now()) // and all comparisons of A fail
		if st := m.state(); !st.Filled || st.Lag != time.Hour {
			t.Errorf("%+v", st)
		}
	})
}
