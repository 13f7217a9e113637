package service_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func (f *fixture) patch(name, revision, patch string) (*service.Written, error) {
	var p any
	if patch != "" {
		p = json.RawMessage(patch)
	}
	return f.Writer.Patch(context.Background(), service.PatchRequest{Identity: servicetest.Named(name), ExpectedRevision: revision, Patch: p})
}

func specText(t *testing.T, r *backend.Resource) string {
	t.Helper()
	b, err := decodeBody(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b.Spec)
}

func TestWrite_APatchMergesReplacesListsAndClears(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A","weight":100,"tags":["x","y"],"box":{"id":"123e4567-e89b-12d3-a456-426614174000"}}`)
	r := f.Rewrite("a", true, func(m map[string]any) { m["spec"].(map[string]any)["future"] = 1 }).Revision.String()
	for _, step := range []struct{ patch, want string }{
		{`{"weight":null,"tags":["z"]}`, `{"box":{"id":"123e4567-e89b-12d3-a456-426614174000"},"future":1,"tags":["z"],"title":"A"}`},
		{`{"box":{"id":null,"import":true}}`, `{"box":{"import":true},"future":1,"tags":["z"],"title":"A"}`},
		{`{"box":null,"tags":[]}`, `{"future":1,"tags":[],"title":"A"}`},
		{`{"box":{"import":true}}`, `{"box":{"import":true},"future":1,"tags":[],"title":"A"}`},
	} {
		out, err := f.patch("a", r, step.patch)
		if err != nil || out.Outcome != service.Updated {
			t.Fatalf("%s: %+v %v", step.patch, out, err)
		}
		if got := specText(t, out.Resource.Stored); got != step.want {
			t.Errorf("%s:\ngot  %s\nwant %s", step.patch, got, step.want)
		}
		r = out.Resource.Stored.Revision.String()
	}
	before := f.LogPosition()
	for _, patch := range []string{"", `{}`, `{"weight":null}`, `{"title":"A"}`} {
		if out, err := f.patch("a", r, patch); err != nil || out.Outcome != service.Unchanged || f.LogPosition() != before {
			t.Errorf("%s: %+v %v", patch, out, err)
		}
	}
	for _, c := range []struct{ patch, want string }{
		{`{"title":null}`, "spec.title required"},
		{`{"colour":"dark-red","heavy":true}`, "spec rule; spec.colour immutable"},
		{`{"wieght":1,"box":{"import":true,"nothing":null}}`, "spec.box.nothing unknown; spec.wieght unknown"},
		{`{"parts":[{"slot":"s","nothing":1}]}`, "spec.parts[0].nothing unknown"},
	} {
		_, err := f.patch("a", r, c.patch)
		if got := servicetest.ViolationPaths(servicetest.WantCode(t, err, failure.CodeValidationFailed)); got != c.want {
			t.Errorf("%s: %s, want %s", c.patch, got, c.want)
		}
	}
	_, err := f.patch("a", "1-1", `{}`)
	servicetest.WantCode(t, err, failure.CodeConflict)
	_, err = f.patch("nobody", r, `{}`)
	servicetest.WantCode(t, err, failure.CodeNotFound)
	_, err = f.patch("a", r, `[]`)
	servicetest.WantCode(t, err, failure.CodeBadUserInput)
}

func TestWrite_AnUpsertCreatesThenReplacesThenLeavesAlone(t *testing.T) {
	f := setup(t)
	for _, step := range []struct {
		spec string
		want service.Outcome
	}{{`{"title":"A"}`, service.Created}, {`{"title":"B"}`, service.Updated}, {`{"title":"B"}`, service.Unchanged}} {
		out, err := f.Writer.Upsert(context.Background(), service.UpsertRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(step.spec)})
		if err != nil || out.Outcome != step.want {
			t.Fatalf("%s: %+v %v", step.spec, out, err)
		}
	}
}

func TestWrite_AStatusIsWrittenAtExactlyTheCurrentRevision(t *testing.T) {
	f := setup(t)
	created := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored
	status := func(revision, status string) (*service.Written, error) {
		return f.Writer.UpdateStatus(context.Background(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: revision, Status: json.RawMessage(status)})
	}
	out, err := status(created.Revision.String(), `{"id":"one"}`)
	if err != nil {
		t.Fatal(err)
	}
	first := out.Resource.Stored
	if first.SpecRevision != created.SpecRevision || specText(t, first) != `{"title":"A"}` {
		t.Errorf("spec revision %v, spec %s", first.SpecRevision, specText(t, first))
	}
	_, err = status(created.Revision.String(), `{"id":"two"}`)
	if e := servicetest.WantCode(t, err, failure.CodeConflict); e.CurrentRevision != first.Revision.String() {
		t.Errorf("current %s", e.CurrentRevision)
	}
	if out, err = status(first.Revision.String(), `{"id":"one"}`); err != nil || out.Outcome != service.Unchanged {
		t.Errorf("%+v %v", out, err)
	}
	if _, err = f.UpdateWidget("a", created.Revision.String(), `{"title":"B"}`); err != nil {
		t.Errorf("a status write is no conflict for the spec: %v", err)
	}
	if body, _ := decodeBody(f.Stored("a")); string(body.Status) != `{"id":"one"}` {
		t.Errorf("status %s", body.Status)
	}
	_, err = status("", `{}`)
	servicetest.WantCode(t, err, failure.CodeConflict)
}

func TestWrite_AStatusWriteKeepsStoredFieldsThatThisGatewayDoesNotKnow(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A"}`)
	r := f.Rewrite("a", false, func(m map[string]any) {
		m["spec"].(map[string]any)["future"] = 1
		m["status"] = map[string]any{"id": "one", "future": 2}
	})
	out, err := f.Writer.UpdateStatus(context.Background(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: r.Revision.String(), Status: json.RawMessage(`{"id":"two"}`)})
	if err != nil {
		t.Fatal(err)
	}
	body, err := decodeBody(out.Resource.Stored)
	if err != nil || string(body.Spec) != `{"future":1,"title":"A"}` || string(body.Status) != `{"future":2,"id":"two"}` {
		t.Errorf("spec %s, status %s, %v", body.Spec, body.Status, err)
	}
}

func TestWrite_SubKindAndExpiryAreForKindsThatHaveThem(t *testing.T) {
	f := setup(t)
	ctx := context.Background()
	id := kind.Identity{Kind: "Cluster", Name: "c"}
	later := service.Optional[time.Time]{Set: true, Value: f.Store.Now().Add(time.Hour)}
	_, err := f.Writer.Create(ctx, service.CreateRequest{Identity: id, SubKind: "moon", Spec: json.RawMessage(`{"title":"C"}`)})
	if got := servicetest.ViolationPaths(servicetest.WantCode(t, err, failure.CodeValidationFailed)); got != "subKind in" {
		t.Errorf("violations %s", got)
	}
	out, err := f.Writer.Create(ctx, service.CreateRequest{Identity: id, SubKind: "edge", Metadata: service.Metadata{ExpiresAt: later}, Spec: json.RawMessage(`{"title":"C"}`)})
	if err != nil || out.Resource.Stored.ExpiresAt.IsZero() {
		t.Fatalf("%+v %v", out, err)
	}
	_, err = f.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, SubKind: "core", Spec: json.RawMessage(`{"title":"C"}`)})
	if got := servicetest.ViolationPaths(servicetest.WantCode(t, err, failure.CodeValidationFailed)); got != "subKind immutable" {
		t.Errorf("violations %s", got)
	}
	out, err = f.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, Metadata: service.Metadata{ExpiresAt: service.Optional[time.Time]{Set: true}}, Spec: json.RawMessage(`{"title":"C"}`)})
	if err != nil || out.Outcome != service.Updated || !out.Resource.Stored.ExpiresAt.IsZero() {
		t.Fatalf("cleared: %+v %v", out, err)
	}
	for at, want := range map[string]string{"0001-01-01T00:00:00Z": "metadata.expiresAt future", "9999-12-31T23:59:59-23:00": "metadata.expiresAt max"} {
		when, _ := time.Parse(time.RFC3339, at)
		_, err = f.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, Metadata: service.Metadata{ExpiresAt: service.ExpiresAt(when)}, Spec: json.RawMessage(`{"title":"C"}`)})
		if got := servicetest.ViolationPaths(servicetest.WantCode(t, err, failure.CodeValidationFailed)); got != want {
			t.Errorf("%s: violations %s", at, got)
		}
	}
	_, err = f.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.Named("a"), Metadata: service.Metadata{ExpiresAt: later}, Spec: json.RawMessage(`{"title":"A"}`)})
	servicetest.WantCode(t, err, failure.CodeBadUserInput)
	_, err = f.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.Named("a"), SubKind: "edge", Spec: json.RawMessage(`{"title":"A"}`)})
	servicetest.WantCode(t, err, failure.CodeValidationFailed)
}

func TestWrite_AFilteredStreamSaysEnteredAndLeft(t *testing.T) {
	f := setup(t)
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

func TestWrite_ASnapshotIsRebuiltFromItsEvents(t *testing.T) {
	f := setup(t)
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
