package change_test

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
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestChange_AStreamBeginsInSyncThenFollows(t *testing.T) {
	f := servicetest.Setup(t)
	f.CreateWidget("before", `{"title":"A"}`)
	c := f.StartChanges(change.Request{})
	r := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored.Revision.String()
	if _, err := f.UpdateWidget("a", r, `{"title":"B"}`); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Writer.Delete(context.Background(), service.DeleteRequest{Identity: servicetest.Named("a")}); err != nil {
		t.Fatal(err)
	}
	got := servicetest.Take(t, c, 4)
	if s := servicetest.Story(got); s != "IN_SYNC; ADDED a; MODIFIED a; DELETED a; " {
		t.Errorf("stream %s", s)
	}
	for _, event := range got {
		if b, err := event.Body(); err != nil || (b == nil) != (event.Type == change.InSync) {
			t.Errorf("%s: body %v %v", event.Type, b, err)
		}
	}
}

func TestChange_AStreamResumesAfterEveryCursor(t *testing.T) {
	f := servicetest.Setup(t)
	start := f.LogPosition()
	for i := range 10 {
		f.CreateWidget(fmt.Sprintf("n%d", i), `{"title":"A"}`)
	}
	all := servicetest.Take(t, f.StartChanges(change.Request{After: &start}), 11)
	if all[10].Type != change.InSync {
		t.Fatalf("stream %s", servicetest.Story(all))
	}
	for i := range 10 {
		rest := servicetest.Take(t, f.StartChanges(change.Request{After: &all[i].Cursor}), 10-i)
		if servicetest.Story(rest) != servicetest.Story(all[i+1:]) {
			t.Errorf("after %d: %s, want %s", i, servicetest.Story(rest), servicetest.Story(all[i+1:]))
		}
	}
}

func TestChange_AStreamKeepsToItsScope(t *testing.T) {
	f := servicetest.Setup(t)
	start := f.LogPosition()
	other := "other"
	for _, id := range []kind.Identity{servicetest.Named("a"), servicetest.Named("b"), {Kind: "Widget", Namespace: &other, Name: "a"}} {
		if _, err := f.Writer.Create(context.Background(), service.CreateRequest{Identity: id, Spec: map[string]any{"title": "A"}}); err != nil {
			t.Fatal(err)
		}
	}
	f.Put(backend.Key{Kind: "_lease", Namespace: "default", Name: "x"}, backend.Put{UID: "u", Body: []byte("x")})
	f.Put(backend.Key{Kind: "Gadget", Namespace: "default", Name: "x"}, backend.Put{UID: "u", Body: []byte("x")})
	for _, c := range []struct {
		req  change.Request
		want string
	}{
		{change.Request{}, "ADDED a; ADDED b; ADDED a; IN_SYNC; "},
		{change.Request{Kinds: []string{"Widget"}, Namespace: servicetest.Pointer("default")}, "ADDED a; ADDED b; IN_SYNC; "},
		{change.Request{Name: servicetest.Pointer("a"), Namespace: &other}, "ADDED a; IN_SYNC; "},
		{change.Request{Name: servicetest.Pointer("nobody")}, "IN_SYNC; "},
	} {
		c.req.After = &start
		var got []change.Change
		stream := f.StartChanges(c.req)
		for len(got) == 0 || got[len(got)-1].Type != change.InSync {
			got = append(got, servicetest.Take(t, stream, 1)...)
		}
		if servicetest.Story(got) != c.want {
			t.Errorf("%+v: %s, want %s", c.req, servicetest.Story(got), c.want)
		}
	}
}

func TestChange_BadStreamsAreRefused(t *testing.T) {
	f := servicetest.Setup(t)
	_, err := f.Feed.Changes(context.Background(), change.Request{After: servicetest.Pointer("rubbish")})
	servicetest.WantCode(t, err, failure.CodeCursorInvalid)
	_, err = f.Feed.Changes(context.Background(), change.Request{After: servicetest.Pointer("")})
	servicetest.WantCode(t, err, failure.CodeCursorInvalid)
	foreign := backend.NewPosition(backend.Revision{Epoch: 1, Seq: 1}).String()
	_, err = f.Feed.Changes(context.Background(), change.Request{After: &foreign})
	servicetest.WantCode(t, err, failure.CodePositionExpired)
	_, err = f.Feed.Changes(context.Background(), change.Request{Kinds: []string{"Cluster"}})
	servicetest.WantCode(t, err, failure.CodeBadUserInput)
	_, err = f.Feed.Changes(context.Background(), change.Request{Name: servicetest.Pointer("Not A Name")})
	servicetest.WantCode(t, err, failure.CodeValidationFailed)
}

// A put without a change tells nothing of the state before.
func TestChange_ALiveStreamTakesTheStateBeforeFromMemoryWhereTheLogDoesNotTellIt(t *testing.T) {
	f := servicetest.SetupIndexed(t)
	f.CreateWidget("in", `{"title":"A"}`)
	f.CreateWidget("out", `{"title":"B"}`)
	start := f.LogPosition()
	for filter, condition := range map[string]any{"an index": map[string]any{"eq": "A"}, "a test": map[string]any{"startsWith": "A"}} {
		request := change.Request{Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"title": condition}}}
		live := f.StartChanges(request)
		servicetest.Take(t, live, 1)
		for _, c := range []struct{ name, title string }{{"out", "C"}, {"out", "A"}, {"in", "A"}, {"in", "B"}, {"out", "B"}, {"in", "A"}} {
			was := f.Stored(c.name)
			f.Put(was.Key, backend.Put{UID: was.UID, Body: backend.EncodeBody([]byte(`{"spec":{"title":"` + c.title + `"}}`))})
		}
		if got := servicetest.Story(servicetest.Take(t, live, 5)); got != "ADDED out; MODIFIED in; DELETED in; DELETED out; ADDED in; " {
			t.Errorf("by %s, live: %s", filter, got)
		}
	}
	request := change.Request{Kinds: []string{"Widget"}, Filter: map[string]any{"spec": map[string]any{"title": map[string]any{"eq": "A"}}}, After: &start}
	if got := servicetest.Story(servicetest.Take(t, f.StartChanges(request), 5)); !strings.HasPrefix(got, "ADDED out; MODIFIED in; DELETED in; DELETED out; ADDED in; ") {
		t.Errorf("resumed: %s", got)
	}
}
