package service_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestWrite_AReadOnlyGatewayTakesDryRunsAlone(t *testing.T) {
	opening, err := memory.Open(memory.Config{})
	store := servicetest.Opened(t, opening, err)
	writer := servicetest.NewGateway(t, store, service.Config{})
	defer writer.End()
	spec := map[string]any{"title": "a"}
	created, err := writer.Writer.Create(t.Context(), service.CreateRequest{Identity: servicetest.Book("default", "a"), Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	revision := created.Resource.Stored.Revision.String()
	at, err := store.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	reader := servicetest.NewGateway(t, store, service.Config{ReadOnly: true})
	defer reader.End()
	stop := (&servicetest.House{Service: reader.Service, T: t, Store: store}).Start()
	defer stop()
	manifest := "apiVersion: example.org/v1\nkind: Book\nmetadata: {name: b}\nspec: {title: b}\n"
	for verb, write := range map[string]func(dry bool) error{
		"create": func(dry bool) error {
			_, err := reader.Writer.Create(t.Context(), service.CreateRequest{Identity: servicetest.Book("default", "b"), Spec: spec, DryRun: dry})
			return err
		},
		"patch": func(dry bool) error {
			_, err := reader.Writer.Patch(t.Context(), service.PatchRequest{Identity: servicetest.Book("default", "a"), ExpectedRevision: revision, Patch: map[string]any{"title": "b"}, DryRun: dry})
			return err
		},
		"apply": func(dry bool) error {
			_, err := reader.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: manifest, DryRun: dry})
			return err
		},
		"delete": func(dry bool) error {
			_, err := reader.Writer.Delete(t.Context(), service.DeleteRequest{Identity: servicetest.Book("default", "a"), DryRun: dry})
			return err
		},
	} {
		code, e := servicetest.ErrorOf(t, write(false))
		if code != failure.CodeUnavailable || e.Setting != "read-only" || e.Retryable {
			t.Errorf("%s: %+v", verb, e)
		}
		if err := write(true); err != nil {
			t.Errorf("%s, a dry run: %v", verb, err)
		}
	}
	if _, err := reader.Writer.Create(t.Context(), service.CreateRequest{Identity: kind.Identity{Kind: "Nothing", Name: "n"}}); err == nil {
		t.Error("an unknown kind is created")
	}
	if got, err := store.Get(t.Context(), backend.Key{Kind: "Book", Namespace: "default", Name: "a"}); err != nil || servicetest.BookTitle(t, got[0]) != "a" {
		t.Errorf("%v, %v", got, err)
	}
	if now, err := store.Position(t.Context()); err != nil || !now.Equal(at) {
		t.Errorf("the store is at %s, %v; it was at %s", now, err, at)
	}
}
