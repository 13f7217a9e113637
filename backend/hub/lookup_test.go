package hub_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
)

// byTeam has the teams before and after as values, unless the body says that nobody knows them.
type byTeam struct{ index string }

func (a byTeam) Values(e *backend.Event) (values [][]byte, all bool) {
	for _, of := range [][]byte{e.Resource.Body, e.Change} {
		if team, unknown := bytes.CutPrefix(of, []byte("?")); unknown {
			return nil, true
		} else if len(team) > 0 {
			values = append(values, team)
		}
	}
	return values, false
}

// value is the encoding of a team.
func value(team string, i int) string { return string(backend.AppendString(nil, fmt.Sprint(team, i))) }

// team writes a resource of a team. The change has the team before it.
func (f *fixture) team(team string) {
	f.Helper()
	body := []byte(team)
	if team != "?" {
		body = backend.AppendString(nil, team)
	}
	a := backend.Action{Op: backend.OpPut, Key: backend.Key{Kind: "Thing", Namespace: "a", Name: "x"}, Put: backend.Put{UID: "u", Body: body}}
	if f.last != nil {
		a.If.Revision, a.Put.Change = f.last.Revision, f.last.Body
	}
	res, err := f.store.Apply(f.Context(), backend.Batch{RequestID: "r", Deadline: time.Now().Add(time.Hour), Actions: []backend.Action{a}})
	if err != nil {
		f.Fatal(err)
	}
	f.last = res.Resources[0]
}

func TestLookup_WatchesThatWantCertainValuesAreFoundAndNotAsked(t *testing.T) {
	const watches = 1000
	inBubble(t, hub.Config{}, func(f *fixture) {
		calls := 0
		all := make([]*hub.Watcher, watches)
		for i := range all {
			all[i] = f.watch(hub.Watch{
				Lookup: &hub.Lookup{By: byTeam{"team"}, Values: []string{value("t", i), value("u", i)}},
				Covers: func(backend.Key) bool { calls++; return true },
			})
			if d := f.next(all[i]); len(d.Events) != 0 { // the mark
				t.Fatal(d)
			}
		}
		for _, c := range []struct {
			team  string
			calls int
			hear  []int
		}{
			{"t7", 1, []int{7}},
			{"u7", 1, []int{7}}, // before and after: once
			{"t9", 2, []int{7, 9}},
			{"nobody", 1, []int{9}},
			{"?", watches, nil}, // the values are unknown, so Covers is called for every watch
		} {
			calls = 0
			f.team(c.team)
			for _, i := range c.hear {
				if d := f.next(all[i]); len(d.Events) != 1 {
					t.Errorf("%s: %d hears %d events", c.team, i, len(d.Events))
				}
			}
			synctest.Wait()
			if calls != c.calls {
				t.Errorf("%s: Covers was called for %d watches, want %d", c.team, calls, c.calls)
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

// TestLookup_AWatchLeavesWhatComesToAnotherWithoutAGap says which of its events were told.
func TestLookup_AWatchLeavesWhatComesToAnotherWithoutAGap(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		first, second := f.watch(hub.Watch{}), f.watch(hub.Watch{})
		f.next(first)
		f.next(second)
		f.team("a")
		synctest.Wait()
		if _, ok := second.CaughtUpWith(first); ok {
			t.Error("one that has an event to deliver is level")
		}
		f.next(second)
		seen, ok := second.CaughtUpWith(first) // of whose events one waits
		second.Close()
		if !ok || seen != 1 {
			t.Errorf("seen %d, %v", seen, ok)
		}
		f.team("b")
		synctest.Wait()
		if d := f.next(first); len(d.Events) != 2 {
			t.Errorf("%d events", len(d.Events))
		}
		third := f.watch(hub.Watch{})
		f.next(third)
		if seen, ok := third.CaughtUpWith(first); !ok || seen != 2 {
			t.Errorf("seen %d, %v", seen, ok)
		}
		third.Close()
		first.Close()
	})
}

// asking asks the hub something whenever it is asked for values.
type asking struct{ h **hub.Hub }

func (a asking) Values(*backend.Event) (values [][]byte, all bool) {
	(*a.h).Subscribers()
	return [][]byte{[]byte("v")}, false
}

func TestLookup_TheHubIsNotLockedWhileValuesAreRead(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		w := f.watch(hub.Watch{Lookup: &hub.Lookup{By: asking{&f.Hub}, Values: []string{"v"}}})
		defer w.Close()
		f.next(w) // the mark
		f.team("t")
		if d := f.next(w); len(d.Events) != 1 {
			t.Errorf("%+v", d)
		}
	})
}
