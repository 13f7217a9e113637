package service_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestUnreadable_ADamagedResourceIsWrittenAnewByAnUnconditionalWrite(t *testing.T) {
	for name, write := range map[string]func(f *fixture) (*service.Written, error){
		"upsert": func(f *fixture) (*service.Written, error) {
			return f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: servicetest.Named("a"), Spec: servicetest.Raw(`{"title":"B"}`)})
		},
		"apply": func(f *fixture) (*service.Written, error) {
			return f.apply(strings.Replace(widgetManifest, "title: A", "title: B", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			uid := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored.UID
			f.Damage("a")
			_, err := f.Reader.Get(t.Context(), servicetest.Named("a"))
			servicetest.WantCode(t, err, failure.CodeUnreadable)
			out, err := write(f)
			if err != nil || out.Outcome != service.Updated || out.Resource.Body == nil {
				t.Fatalf("%+v %v", out, err)
			}
			got, err := f.Reader.Get(t.Context(), servicetest.Named("a"))
			if err != nil || got.Stored.UID != uid {
				t.Fatalf("%+v %v", got, err)
			}
			if body, err := decodeBody(got.Stored); err != nil || body.Metadata.Generation != 1 || !strings.Contains(string(body.Spec), `"title":"B"`) {
				t.Errorf("%+v %v", body, err)
			}
		})
	}
	t.Run("a conditional one is refused", func(t *testing.T) {
		f := setup(t)
		f.CreateWidget("a", `{"title":"A"}`)
		r := f.Damage("a")
		_, err := f.UpdateWidget("a", r.Revision.String(), `{"title":"B"}`)
		servicetest.WantCode(t, err, failure.CodeUnreadable)
	})
}

func TestUnreadable_AStatusOfAnyTextIsStored(t *testing.T) {
	f := setup(t)
	for name, conditionType := range map[string]string{"NULs": strings.Repeat("\x00", 1024), "long": strings.Repeat("x", 5000), "many bytes": strings.Repeat("\U0001F600", 300)} {
		r := f.CreateWidget(strings.ReplaceAll(strings.ToLower(name), " ", "-"), `{"title":"A"}`).Resource.Stored
		status := map[string]any{"id": conditionType, "conditions": []any{map[string]any{"type": conditionType, "status": conditionType}}}
		if _, err := f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: kind.Identity{Kind: "Widget", Name: r.Name}, ExpectedRevision: r.Revision.String(), Status: status}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnreadable_MoreIndexedValuesThanAResourceMayHaveAreRefused(t *testing.T) {
	k := servicetest.WithConditions(servicetest.Widget())
	f := setup(t)
	var err error
	if f.Service, err = service.New(service.Config{Kinds: []descriptor.Kind{k}, Store: f.Store}); err != nil {
		t.Fatal(err)
	}
	r := f.CreateWidget("a", `{"title":"A","tags":["x"]}`).Resource.Stored
	conditions := func(n int) map[string]any {
		var list []any
		for i := range n {
			list = append(list, map[string]any{"type": fmt.Sprint("t", i), "status": "True"})
		}
		return map[string]any{"conditions": list}
	}
	widgets, err := kind.Compile([]descriptor.Kind{k})
	if err != nil {
		t.Fatal(err)
	}
	rows := func(r *backend.Resource) int {
		b, err := widgets.Body("Widget").Read(r)
		if err != nil {
			t.Fatal(err)
		}
		return len(widgets.All()[0].Rows.Of(b))
	}
	own := rows(r)
	out, err := f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: r.Revision.String(), Status: conditions(index.MaxRows - own)})
	if err != nil || rows(out.Resource.Stored) != index.MaxRows {
		t.Fatalf("as many as fit: %v", err)
	}
	_, err = f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: out.Resource.Stored.Revision.String(), Status: conditions(index.MaxRows - own + 1)})
	if e := servicetest.WantCode(t, err, failure.CodeLimitExceeded); e.Path != "status.conditions" || e.Limit != 1024 || e.Name != "a" {
		t.Errorf("%+v", e)
	}
}
