package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

func (f *fixture) changes(req change.Request) *change.Stream {
	f.t.Helper()
	c, err := f.Changes(context.Background(), req)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	return c
}

// take reads n events of a stream.
func take(t *testing.T, c *change.Stream, n int) (out []change.Change) {
	t.Helper()
	for len(out) < n {
		more, err := c.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, more...)
	}
	return out
}

func story(changes []change.Change) string {
	s := ""
	for _, c := range changes {
		s += string(c.Type)
		if c.Stored != nil {
			s += " " + c.Stored.Name
		}
		s += "; "
	}
	return s
}

func TestAStreamBeginsInSyncThenFollows(t *testing.T) {
	f := setup(t)
	f.create("before", `{"title":"A"}`)
	c := f.changes(change.Request{})
	r := f.create("a", `{"title":"A"}`).Resource.Stored.Revision.String()
	if _, err := f.update("a", r, `{"title":"B"}`); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Delete(context.Background(), service.DeleteRequest{Identity: named("a")}); err != nil {
		t.Fatal(err)
	}
	got := take(t, c, 4)
	if s := story(got); s != "IN_SYNC; ADDED a; MODIFIED a; DELETED a; " {
		t.Errorf("stream %s", s)
	}
	for _, event := range got {
		if b, err := event.Body(); err != nil || (b == nil) != (event.Type == change.InSync) {
			t.Errorf("%s: body %v %v", event.Type, b, err)
		}
	}
}

func TestAStreamResumesAfterEveryCursor(t *testing.T) {
	f := setup(t)
	start := f.position()
	for i := range 10 {
		f.create(fmt.Sprintf("n%d", i), `{"title":"A"}`)
	}
	all := take(t, f.changes(change.Request{After: &start}), 11)
	if all[10].Type != change.InSync {
		t.Fatalf("stream %s", story(all))
	}
	for i := range 10 {
		rest := take(t, f.changes(change.Request{After: &all[i].Cursor}), 10-i)
		if story(rest) != story(all[i+1:]) {
			t.Errorf("after %d: %s, want %s", i, story(rest), story(all[i+1:]))
		}
	}
}

func TestAStreamKeepsToItsScope(t *testing.T) {
	f := setup(t)
	start := f.position()
	other := "other"
	for _, id := range []kind.Identity{named("a"), named("b"), {Kind: "Widget", Namespace: &other, Name: "a"}} {
		if _, err := f.Create(context.Background(), service.CreateRequest{Identity: id, Spec: map[string]any{"title": "A"}}); err != nil {
			t.Fatal(err)
		}
	}
	f.put(backend.Key{Kind: "_lease", Namespace: "default", Name: "x"}, backend.Put{UID: "u", Body: []byte("x")})
	f.put(backend.Key{Kind: "Gadget", Namespace: "default", Name: "x"}, backend.Put{UID: "u", Body: []byte("x")})
	for _, c := range []struct {
		req  change.Request
		want string
	}{
		{change.Request{}, "ADDED a; ADDED b; ADDED a; IN_SYNC; "},
		{change.Request{Kinds: []string{"Widget"}, Namespace: pointer("default")}, "ADDED a; ADDED b; IN_SYNC; "},
		{change.Request{Name: pointer("a"), Namespace: &other}, "ADDED a; IN_SYNC; "},
		{change.Request{Name: pointer("nobody")}, "IN_SYNC; "},
	} {
		c.req.After = &start
		var got []change.Change
		stream := f.changes(c.req)
		for len(got) == 0 || got[len(got)-1].Type != change.InSync {
			got = append(got, take(t, stream, 1)...)
		}
		if story(got) != c.want {
			t.Errorf("%+v: %s, want %s", c.req, story(got), c.want)
		}
	}
}

func TestBadStreamsAreRefused(t *testing.T) {
	f := setup(t)
	_, err := f.Changes(context.Background(), change.Request{After: pointer("rubbish")})
	wantCode(t, err, failure.CodeCursorInvalid)
	_, err = f.Changes(context.Background(), change.Request{After: pointer("")})
	wantCode(t, err, failure.CodeCursorInvalid)
	foreign := backend.NewPosition(backend.Revision{Epoch: 1, Seq: 1}).String()
	_, err = f.Changes(context.Background(), change.Request{After: &foreign})
	wantCode(t, err, failure.CodePositionExpired)
	_, err = f.Changes(context.Background(), change.Request{Kinds: []string{"Cluster"}})
	wantCode(t, err, failure.CodeBadUserInput)
	_, err = f.Changes(context.Background(), change.Request{Name: pointer("Not A Name")})
	wantCode(t, err, failure.CodeValidationFailed)
}

// A put without a change tells nothing of the state before.
func TestALiveStreamTakesTheStateBeforeFromMemoryWhereTheLogDoesNotTellIt(t *testing.T) {
	f := setupIndexed(t)
	f.create("in", `{"title":"A"}`)
	f.create("out", `{"title":"B"}`)
	start := f.position()
	for filter, condition := range map[string]any{"an index": map[string]any{"eq": "A"}, "a test": map[string]any{"startsWith": "A"}} {
		request := change.Request{Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"title": condition}}}
		live := f.changes(request)
		take(t, live, 1)
		for _, c := range []struct{ name, title string }{{"out", "C"}, {"out", "A"}, {"in", "A"}, {"in", "B"}, {"out", "B"}, {"in", "A"}} {
			was := f.stored(c.name)
			f.put(was.Key, backend.Put{UID: was.UID, Body: backend.EncodeBody([]byte(`{"spec":{"title":"` + c.title + `"}}`))})
		}
		if got := story(take(t, live, 5)); got != "ADDED out; MODIFIED in; DELETED in; DELETED out; ADDED in; " {
			t.Errorf("by %s, live: %s", filter, got)
		}
	}
	request := change.Request{Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "A"}}}, After: &start}
	if got := story(take(t, f.changes(request), 5)); !strings.HasPrefix(got, "ADDED out; MODIFIED in; DELETED in; DELETED out; ADDED in; ") {
		t.Errorf("resumed: %s", got)
	}
}
