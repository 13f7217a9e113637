package backendtest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// everyByte returns n bytes. If n is at least 256, they have all values of a
// byte.
func everyByte(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i * 7)
	}
	return out
}

func eventStatements() []statement {
	return []statement{
		{"an event carries type, revision, resource, state before, change, actor, request id, time and position", func(f *fixture) {
			f.start()
			from := f.position()
			var ids []string
			var stored []*backend.Resource
			for i := range 4 {
				f.clock.Advance(time.Second)
				a := create(key("a"), "1")
				switch i {
				case 1, 2:
					a = changed(put(key("a"), fmt.Sprint(i)), stored[i-1].Revision, fmt.Append(nil, "change ", i))
				case 3:
					a = remove(key("a"))
				}
				b := f.batch(a)
				b.Actor = fmt.Sprint("actor ", i)
				ids = append(ids, b.RequestID)
				res, err := f.Apply(f.ctx(), b)
				f.wantErr(err, nil)
				stored = append(stored, res.Resources[0])
			}
			want := []backend.Event{
				{Type: backend.Added, Resource: stored[0]},
				{
					Type:     backend.Modified,
					Resource: stored[1],
					Before:   backend.BeforeOf(stored[0]),
					Change:   []byte("change 1"),
				},
				{
					Type:     backend.Modified,
					Resource: stored[2],
					Before:   backend.BeforeOf(stored[1]),
					Change:   []byte("change 2"),
				},
				{Type: backend.Deleted, Resource: stored[2]},
			}
			start := f.clock.Now().Truncate(time.Millisecond).Add(-3 * time.Second)
			for i := range want {
				want[i].Revision = backend.Revision{Epoch: f.own(from).Epoch, Seq: uint64(i + 1)}
				want[i].Position = f.at(want[i].Revision)
				want[i].RequestID, want[i].Actor = ids[i], fmt.Sprint("actor ", i)
				want[i].Time = start.Add(time.Duration(i) * time.Second)
			}
			got := f.replay(from)
			equal(f, got, want)
			equal(f, got[3].Revision.Compare(got[3].Resource.Revision), 1)
			f.replayAgain(from, got)
		}},
		{"the state before a change is that of the resource which it replaced", func(f *fixture) {
			f.start()
			from := f.position()
			expiry := f.clock.Now().Add(time.Hour).Truncate(time.Millisecond)
			first := f.must(refs(
				expiring(create(key("a"), "1"), expiry), bound("z"), loose("l"), bound("a"), bound("a\x00"),
			)).Resources[0]
			firstAt := f.clock.Now().Truncate(time.Millisecond)
			f.clock.Advance(time.Second)
			second := f.must(deleting(put(key("a"), "2"))).Resources[0]
			secondAt := f.clock.Now().Truncate(time.Millisecond)
			f.clock.Advance(time.Second)
			third := f.must(refs(put(key("a"), "3"), bound("a"), loose("z"))).Resources[0]
			thirdAt := f.clock.Now().Truncate(time.Millisecond)
			f.must(rebind(third, "other", loose("a"), bound("z")))
			fourth := f.must(refs(put(key("a"), "4"), loose("a"), loose("z"))).Resources[0]
			f.must(refs(put(key("a"), "5"), bound("z")))
			events := f.replay(from)
			bounds := []backend.Key{key("z"), key("a"), key("a\x00")}
			want := []*backend.Before{
				nil,
				{Revision: first.Revision, UpdatedAt: firstAt, ExpiresAt: expiry, Bound: bounds},
				{Revision: second.Revision, UpdatedAt: secondAt, Deleting: true, Bound: bounds},
				{Revision: third.Revision, UpdatedAt: thirdAt, Bound: []backend.Key{key("z")}}, // bound by the rebind
				{Revision: fourth.Revision, UpdatedAt: thirdAt},
			}
			for i, e := range events {
				equal(f, e.Before, want[i])
			}
			f.replayAgain(from, events)
		}},
		{"references that change their order are another state before", func(f *fixture) {
			f.start()
			f.must(refs(create(key("a"), "1"), bound("t"), bound("u")))
			from := f.position()
			f.must(refs(put(key("a"), "2"), bound("u"), bound("t")))
			f.must(refs(put(key("a"), "3"), bound("u"), loose("v"), bound("t")))
			events := f.replay(from)
			equal(f, events[0].Before.Bound, []backend.Key{key("t"), key("u")})
			equal(f, events[1].Before.Bound, []backend.Key{key("u"), key("t")})
			f.replayAgain(from, events)
		}},
		{"creation, deletion and purge have no state before and no change, and a purge has no actor", func(f *fixture) {
			f.start()
			from := f.position()
			b := f.batch(
				create(key("a"), "1"), deleting(create(key("b"), "1")),
				expiring(create(key("c"), "1"), f.clock.Now().Add(time.Second)),
			)
			b.Actor = "maker"
			_, err := f.Apply(f.ctx(), b)
			f.wantErr(err, nil)
			f.clock.Advance(time.Second)
			equal(f, f.purge(), 1)
			b = f.batch(remove(key("a")), remove(key("b")))
			b.Actor = "remover"
			_, err = f.Apply(f.ctx(), b)
			f.wantErr(err, nil)
			events := f.replay(from)
			equal(f, summary(events), []string{"ADDED a", "ADDED b", "ADDED c", "DELETED c", "DELETED a", "DELETED b"})
			for i, actor := range []string{"maker", "maker", "maker", "", "remover", "remover"} {
				equal(f, events[i].Before, nil)
				equal(f, events[i].Change, nil)
				equal(f, events[i].Actor, actor)
			}
			f.replayAgain(from, events)
		}},
		{"change and actor come back byte for byte, and an empty change as nil", func(f *fixture) {
			f.start()
			f.must(create(key("a"), "0"), create(key("b"), "0"))
			from := f.position()
			changes := [][]byte{nil, {}, {0}, everyByte(127), everyByte(1000), everyByte(backend.MaxChange)}
			actors := []string{"", "\x00", "actor", string(everyByte(128)), string(everyByte(backend.MaxActor)), ""}
			for i, change := range changes {
				b := f.batch(
					changed(put(key("a"), fmt.Sprint(i)), f.get(key("a")).Revision, change),
					put(key("b"), fmt.Sprint(i)),
				)
				b.Actor = actors[i]
				_, err := f.Apply(f.ctx(), b)
				f.wantErr(err, nil)
			}
			events := f.replay(from)
			for i, change := range changes {
				a, b := events[2*i], events[2*i+1]
				if !bytes.Equal(a.Change, change) || len(change) == 0 && a.Change != nil {
					f.Errorf("change %d of %d bytes comes back as %.40q", i, len(change), a.Change)
				}
				equal(f, b.Change, nil)
				equal(f, a.Actor, actors[i])
				equal(f, b.Actor, actors[i])
			}
			f.replayAgain(from, events)
			f.must(put(key("a"), "last"))
			equal(f, len(f.get(key("a")).Body), 5) // the change is not stored with the resource
		}},
		{"a change has a limit and names the revision that it is from, and an actor has a limit", func(f *fixture) {
			f.start()
			rev := f.must(create(key("a"), "1")).Revisions[0]
			for i, a := range []backend.Action{
				changed(put(key("a"), "2"), rev, make([]byte, backend.MaxChange+1)),
				changed(put(key("a"), "2"), backend.Revision{}, []byte("c")),
				with(
					changed(put(key("a"), "2"), rev, []byte("c")),
					backend.Condition{Presence: backend.Present, UID: "uid-a"},
				),
				changed(create(key("b"), "2"), backend.Revision{}, []byte("c")),
			} {
				if _, err := f.apply(a); err == nil {
					f.Errorf("case %d was accepted", i)
				} else {
					f.wantErr(err, backend.ErrInvalid)
				}
			}
			f.must(changed(put(key("a"), "2"), backend.Revision{}, []byte{}))
			b := f.batch(put(key("a"), "3"))
			b.Actor = strings.Repeat("a", backend.MaxActor+1)
			_, err := f.Apply(f.ctx(), b)
			f.wantErr(err, backend.ErrInvalid)
			equal(f, string(f.get(key("a")).Body), "j2")
		}},
		{"a change of an internal record is taken and logged nowhere", func(f *fixture) {
			f.start()
			rev := f.must(create(lease("l"), "1")).Revisions[0]
			from := f.position()
			f.must(changed(put(lease("l"), "2"), rev, []byte("c")), create(key("a"), "1"))
			events := f.replay(from)
			equal(f, summary(events), []string{"ADDED a"})
			equal(f, events[0].Change, nil)
		}},
		{"the bytes of the log count changes and the references before", func(f *fixture) {
			f.start(func(o *Options) { o.LogBytes = 150_000 })
			f.must(create(key("a"), "0"))
			at := f.own(f.position())
			for i := range 4 { // the log has room for two of them
				f.must(changed(put(key("a"), fmt.Sprint(i)), f.get(key("a")).Revision, everyByte(60_000)))
			}
			at.Seq++
			f.expired(f.at(at))
			at.Seq++
			equal(f, len(f.replay(f.at(at))), 2)
			many := make([]backend.Ref, 1000)
			for i := range many {
				many[i] = bound(fmt.Sprintf("%050d", i))
			}
			f.must(refs(put(key("a"), "bound"), many...))
			f.must(refs(put(key("a"), "free")))
			f.must(refs(put(key("a"), "bound"), many...))
			at = f.own(f.position())
			at.Seq -= 3
			f.expired(f.at(at)) // the put that removes the references has as large an entry as the puts that add them
			at.Seq++
			equal(f, len(f.replay(f.at(at))), 2)
		}},
	}
}

// replayAgain reopens the data, and expects that a replay from the position
// returns the changes in want.
func (f *fixture) replayAgain(from backend.Position, want []backend.Event) {
	f.Helper()
	f.stop()
	f.reopen()
	got := f.replay(from)
	equal(f, len(got), len(want))
	for i := range got {
		got[i].Position = want[i].Position // the revisions of other shards may differ
	}
	equal(f, got, want)
}
