package service_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
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
