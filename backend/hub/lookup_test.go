package hub_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
)

// byTeam has the rows of an index as values, unless the change says that nobody knows them.
type byTeam struct{ index string }

func (a byTeam) Values(e *backend.Event) (values [][]byte, all bool) {
	for _, rows := range [][]backend.Row{e.Resource.Rows, e.RowsBefore} {
		for _, r := range rows {
			if r.Index == a.index {
				values = append(values, r.Value)
			}
		}
	}
	return values, e.Resource.Fingerprint == "other"
}

// value is the encoding of a team.
func value(team string, i int) string { return string(backend.AppendString(nil, fmt.Sprint(team, i))) }

// team writes a resource of a team, and with another definition of indexes if that is wanted.
func (f *fixture) team(team, fingerprint string) {
	f.Helper()
	_, err := f.store.Apply(f.Context(), backend.Batch{RequestID: "r", Deadline: time.Now().Add(time.Hour), Actions: []backend.Action{{
		Op: backend.OpPut, Key: backend.Key{Kind: "Thing", Namespace: "a", Name: "x"},
		Put: backend.Put{UID: "u", Fingerprint: fingerprint, Body: []byte("{}"), Rows: []backend.Row{{Index: "team", Value: backend.AppendString(nil, team)}}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
}

func TestWatchesThatWantCertainValuesAreFoundAndNotAsked(t *testing.T) {
	const watches = 1000
	inBubble(t, hub.Config{}, func(f *fixture) {
		asked := 0
		all := make([]*hub.Watcher, watches)
		for i := range all {
			all[i] = f.watch(hub.Watch{
				Lookup: &hub.Lookup{By: byTeam{"team"}, Values: []string{value("t", i), value("u", i)}},
				Covers: func(backend.Key) bool { asked++; return true },
			})
			if d := f.next(all[i]); len(d.Events) != 0 { // the mark
				t.Fatal(d)
			}
		}
		for _, c := range []struct {
			team, fingerprint string
			asked             int
			hear              []int
		}{
			{"t7", "", 1, []int{7}},
			{"u7", "", 1, []int{7}}, // before and after: once
			{"t9", "", 2, []int{7, 9}},
			{"nobody", "", 1, []int{9}},
			{"t3", "other", watches, nil}, // whoever it concerns is found out by each
		} {
			asked = 0
			f.team(c.team, c.fingerprint)
			for _, i := range c.hear {
				if d := f.next(all[i]); len(d.Events) != 1 {
					t.Errorf("%s: %d hears %d events", c.team, i, len(d.Events))
				}
			}
			synctest.Wait()
			if asked != c.asked {
				t.Errorf("%s: %d watches were asked, want %d", c.team, asked, c.asked)
			}
		}
		for _, w := range all {
			if d, ok, err := w.TryNext(); !ok || err != nil || len(d.Events) != 1 {
				t.Fatalf("%d events, %v", len(d.Events), err)
			}
			w.Close()
		}
	})
}

// TestAWatchLeavesWhatComesToAnotherWithoutAGap says which of its events were told.
func TestAWatchLeavesWhatComesToAnotherWithoutAGap(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		first, second := f.watch(hub.Watch{}), f.watch(hub.Watch{})
		f.next(first)
		f.next(second)
		f.team("a", "")
		synctest.Wait()
		if _, ok := second.Merge(first); ok {
			t.Error("one that has an event to deliver is merged")
		}
		f.next(second)
		seen, ok := second.Merge(first) // of whose events one waits
		if !ok || seen != 1 {
			t.Errorf("seen %d, %v", seen, ok)
		}
		f.team("b", "")
		synctest.Wait()
		if d := f.next(first); len(d.Events) != 2 {
			t.Errorf("%d events", len(d.Events))
		}
		third := f.watch(hub.Watch{})
		f.next(third)
		if seen, ok := third.Merge(first); !ok || seen != 2 {
			t.Errorf("seen %d, %v", seen, ok)
		}
		first.Close()
	})
}
