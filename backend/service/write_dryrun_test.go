package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// would is what a dry run says: the revision, the generation and the spec.
func would(t *testing.T, out *service.Written, err error) (revision string, generation int64, spec string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !out.DryRun || out.Resource == nil || out.Resource.Body == nil {
		t.Fatalf("%+v", out)
	}
	p, err := decodeBody(out.Resource.Stored)
	if err != nil {
		t.Fatal(err)
	}
	return out.Resource.Stored.Revision.String(), p.Metadata.Generation, string(p.Spec)
}

func TestWrite_ADryRunOfEachVerbSaysWhatWouldBeStored(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	out, err := f.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.Named("a"), Spec: raw(`{"title":"A"}`), DryRun: true})
	if revision, generation, spec := would(t, out, err); revision != "" || generation != 1 || spec != `{"title":"A"}` || out.Resource.Stored.UID != "" || out.Resource.Stored.CreatedAt.IsZero() {
		t.Errorf("create: %q %d %s %+v", revision, generation, spec, out.Resource.Stored)
	}
	if f.Stored("a") != nil {
		t.Fatal("a dry create wrote")
	}
	f.CreateWidget("a", `{"title":"A"}`)
	before, at := f.Stored("a"), f.LogPosition()
	current := before.Revision.String()
	for verb, write := range map[string]func() (*service.Written, error){
		"update": func() (*service.Written, error) {
			return f.Writer.Update(ctx, service.UpdateRequest{Identity: servicetest.Named("a"), ExpectedRevision: current, Spec: raw(`{"title":"B"}`), DryRun: true})
		},
		"patch": func() (*service.Written, error) {
			return f.Writer.Patch(ctx, service.PatchRequest{Identity: servicetest.Named("a"), ExpectedRevision: current, Patch: raw(`{"title":"B"}`), DryRun: true})
		},
		"upsert": func() (*service.Written, error) {
			return f.Writer.Upsert(ctx, service.UpsertRequest{Identity: servicetest.Named("a"), Spec: raw(`{"title":"B"}`), DryRun: true})
		},
		"apply": func() (*service.Written, error) {
			return f.Writer.Apply(ctx, service.ApplyRequest{Manifest: strings.Replace(widgetManifest, "title: A", "title: B", 1), DryRun: true})
		},
	} {
		out, err := write()
		if revision, generation, spec := would(t, out, err); revision != current || generation != 2 || !strings.Contains(spec, `"title":"B"`) || out.Resource.Stored.UID != before.UID {
			t.Errorf("%s: %q %d %s", verb, revision, generation, spec)
		}
	}
	out, err = f.Writer.UpdateStatus(ctx, service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: current, Status: raw(`{"id":"x"}`), DryRun: true})
	if _, generation, _ := would(t, out, err); generation != 1 {
		t.Errorf("status: generation %d", generation)
	}
	if p, _ := decodeBody(out.Resource.Stored); string(p.Status) != `{"id":"x"}` {
		t.Errorf("status: %s", p.Status)
	}
	out, err = f.Writer.Delete(ctx, service.DeleteRequest{Identity: servicetest.Named("a"), DryRun: true})
	if revision, _, _ := would(t, out, err); revision != current {
		t.Errorf("delete: revision %q", revision)
	}
	if after := f.Stored("a"); f.LogPosition() != at || after == nil || after.Revision != before.Revision {
		t.Error("a dry run wrote")
	}
}

func TestWrite_ADryRunIsRefusedAsTheWriteWouldBe(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	f.CreateWidget("a", `{"title":"A"}`)
	for says, c := range map[string]struct {
		code  failure.Code
		write func() error
	}{
		"create of what is there": {failure.CodeAlreadyExists, func() error {
			_, err := f.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.Named("a"), Spec: raw(`{"title":"A"}`), DryRun: true})
			return err
		}},
		"an update of a stale revision": {failure.CodeConflict, func() error {
			_, err := f.Writer.Update(ctx, service.UpdateRequest{Identity: servicetest.Named("a"), ExpectedRevision: "1-1", Spec: raw(`{"title":"B"}`), DryRun: true})
			return err
		}},
		"a spec that breaks a rule": {failure.CodeValidationFailed, func() error {
			_, err := f.Writer.Upsert(ctx, service.UpsertRequest{Identity: servicetest.Named("a"), Spec: raw(`{"title":""}`), DryRun: true})
			return err
		}},
		"a resource that is too large": {failure.CodeLimitExceeded, func() error {
			_, err := f.Writer.UpdateStatus(ctx, service.StatusRequest{
				Identity: servicetest.Named("a"), ExpectedRevision: f.Stored("a").Revision.String(), DryRun: true,
				Status: map[string]any{"id": strings.Repeat("x", backend.MaxResourceBytes)},
			})
			return err
		}},
		"a delete of what is not there": {failure.CodeNotFound, func() error {
			_, err := f.Writer.Delete(ctx, service.DeleteRequest{Identity: servicetest.Named("b"), DryRun: true})
			return err
		}},
		"a delete at a stale revision": {failure.CodeConflict, func() error {
			_, err := f.Writer.Delete(ctx, service.DeleteRequest{Identity: servicetest.Named("a"), ExpectedRevision: servicetest.Pointer("1-1"), DryRun: true})
			return err
		}},
	} {
		t.Run(says, func(t *testing.T) { servicetest.WantCode(t, c.write(), c.code) })
	}
}
