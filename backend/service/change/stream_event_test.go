package change_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestStream_SaysWhatEntersAndLeavesItsFilter(t *testing.T) {
	f := servicetest.Setup(t)
	start := f.LogPosition()
	heavy := map[string]any{"spec": map[string]any{"weight": map[string]any{"gte": 200}}}
	write := func(name, spec string) {
		t.Helper()
		if _, err := f.Writer.Upsert(context.Background(), service.UpsertRequest{Identity: servicetest.Named(name), Spec: json.RawMessage(spec)}); err != nil {
			t.Fatal(err)
		}
	}
	write("a", `{"title":"A","weight":100}`)
	write("b", `{"title":"B","weight":300}`)
	write("a", `{"title":"A","weight":200}`)
	write("b", `{"title":"B","weight":400}`)
	write("a", `{"title":"A"}`)
	write("a", `{"title":"AA"}`)
	for _, n := range []string{"a", "b"} {
		if _, err := f.Writer.Delete(context.Background(), service.DeleteRequest{Identity: servicetest.Named(n)}); err != nil {
			t.Fatal(err)
		}
	}
	got := servicetest.Take(t, f.StartChanges(change.Request{Kinds: []string{"Widget"}, Filter: heavy, After: &start}), 6)
	if s := servicetest.Story(got); s != "ADDED b; ADDED a; MODIFIED b; DELETED a; DELETED b; IN_SYNC; " {
		t.Errorf("stream %s", s)
	}
	rest := servicetest.Take(t, f.StartChanges(change.Request{Kinds: []string{"Widget"}, Filter: heavy, After: &got[1].Cursor}), 4)
	if s := servicetest.Story(rest); s != "MODIFIED b; DELETED a; DELETED b; IN_SYNC; " {
		t.Errorf("resumed %s", s)
	}
}

func TestStream_ASnapshotIsRebuiltFromItsEvents(t *testing.T) {
	f := servicetest.Setup(t)
	for i := range 450 {
		f.CreateWidget("n"+string(rune('a'+i%26))+string(rune('a'+i/26)), `{"title":"A"}`)
	}
	stream := f.StartChanges(change.Request{Snapshot: true})
	state, sent := map[string]string{}, map[string]*backend.Revision{}
	steps, resets, synced := 0, 0, false
	for !synced {
		changes, err := stream.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			switch c.Type {
			case change.Reset:
				resets++
				state = map[string]string{}
			case change.InSync:
				synced = c.Cursor != ""
			case change.Deleted:
				if sent[c.Stored.Name] == nil {
					t.Errorf("DELETED of %s, which was not sent", c.Stored.Name)
				}
				delete(state, c.Stored.Name)
			default:
				state[c.Stored.Name] = c.Revision
			}
			if c.Stored != nil {
				r, _ := backend.ParseRevision(c.Revision)
				if before := sent[c.Stored.Name]; before != nil && r.Compare(*before) <= 0 {
					t.Errorf("%s %s at %s after %s", c.Type, c.Stored.Name, r, *before)
				}
				sent[c.Stored.Name] = &r
			}
			if c.Type != change.InSync && c.Cursor != "" {
				t.Errorf("%s has a cursor before IN_SYNC", c.Type)
			}
		}
		// Others write before, in and behind the page that was just read.
		if steps++; steps < 4 {
			name := "nz" + string(rune('a'+steps))
			f.CreateWidget(name+"x", `{"title":"A"}`)
			f.CreateWidget("aa"+string(rune('a'+steps)), `{"title":"A"}`)
			if _, err := f.UpdateWidget("naa", f.Stored("naa").Revision.String(), `{"title":"B`+string(rune('0'+steps))+`"}`); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Writer.Delete(context.Background(), service.DeleteRequest{Identity: servicetest.Named("n" + string(rune('b'+steps)) + "a")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if resets != 1 {
		t.Errorf("%d resets", resets)
	}
	count := 0
	for _, e := range f.MustList(query.ListRequest{First: servicetest.Pointer(1000)}).Edges {
		count++
		if r := e.Resource.Stored; state[r.Name] != r.Revision.String() {
			t.Errorf("%s is at %s, the stream says %q", r.Name, r.Revision, state[r.Name])
		}
	}
	if count != len(state) {
		t.Errorf("%d are stored, %d in the stream's state", count, len(state))
	}
}

func TestStream_AFilteredListenerHearsThatADamagedResourceIsGone(t *testing.T) {
	f := servicetest.Setup(t)
	f.CreateWidget("a", `{"title":"A"}`)
	f.CreateWidget("b", `{"title":"B"}`)
	f.Damage("a")
	c := f.StartChanges(change.Request{Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "A"}}}})
	if got := servicetest.Take(t, c, 1)[0].Type; got != change.InSync {
		t.Fatalf("first is %s", got)
	}
	for _, name := range []string{"b", "a"} {
		if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: servicetest.Named(name)}); err != nil {
			t.Fatal(err)
		}
	}
	e := servicetest.Take(t, c, 1)[0]
	if e.Type != change.Deleted || e.Stored.Name != "a" {
		t.Fatalf("%s %v, want DELETED of a", e.Type, e.Stored)
	}
	if b, err := e.Body(); b != nil || err != nil {
		t.Errorf("its last state is %v %v, want nothing", b, err)
	}
}
