package standard_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

func TestWrite_ACreateThatMakesAnotherNameIsDoneAndNotRepeated(t *testing.T) {
	cfg := fooConfig(t)
	cfg.Wrap = func(
		_ *standardtest.Server, method string, in *dynamicpb.Message, do doing,
	) (*dynamicpb.Message, error) {
		if method == "CreateFoo" {
			standardtest.SetText(fooIn(in), "metadata.name", "chosen")
		}
		return do()
	}
	w := newWorld(t, cfg, "", nil)
	foo := owner.Resource{Key: backend.Key{Kind: "Foo", Name: "asked"}, Spec: []byte(`{}`)}
	a := w.write(t, owner.Write{Resource: foo, IfAbsent: true}, owner.Done)
	if a.Resource != nil || !strings.Contains(a.Message, "chosen") {
		t.Errorf("%+v", a)
	}
}

func TestCatalogue_HasNoCreateIfTheServiceChoosesTheNames(t *testing.T) {
	for name, creates := range map[string]bool{
		"string name = 1;": true,
		"string id = 1;":   true,
		"string name = 1 [(google.api.field_behavior) = OUTPUT_ONLY];": false,
		"string name = 1 [(google.api.field_behavior) = IDENTIFIER];":  false,
	} {
		w := newWorld(t, thingConfig(t, map[string]string{"name": name}), "", nil)
		if is := strings.Contains(w.catalogue.SDL, "CREATE"); is != creates {
			t.Errorf("%s: CREATE is %v, notes %v", name, is, w.catalogue.Notes)
		}
	}
	named := thingConfig(t, map[string]string{
		"name":               "string name = 1 [(google.api.field_behavior) = IDENTIFIER];",
		"CreateThingRequest": "string thing_id = 2;",
	})
	if w := newWorld(t, named, "", nil); !strings.Contains(w.catalogue.SDL, "CREATE") {
		t.Errorf("no CREATE with an id: %v", w.catalogue.Notes)
	}
}

func TestWrite_AnAcceptedOperationIsNotReportedAsNotSent(t *testing.T) {
	cfg := libraryConfig(t)
	cfg.SlowOperations = true
	cfg.Before = func(_ context.Context, method string) error {
		if method == "GetOperation" {
			return refused(connect.CodeUnimplemented, "no operations")
		}
		return nil
	}
	w := newWorld(t, cfg, "", nil)
	book := owner.Resource{Key: bookKey("emma"), Spec: []byte(`{"title":"Emma"}`)}
	_, err := w.client.Write(t.Context(), owner.Write{Resource: book, IfAbsent: true})
	if err == nil || errors.Is(err, owner.ErrUnimplemented) || errors.Is(err, owner.ErrNotSent) {
		t.Errorf("%v", err)
	}
}

func TestWrite_ADryRunThatTheMethodDoesNotHaveChangesNothing(t *testing.T) {
	const field = "bool validate_only = 9;"
	fields := map[string]string{"CreateThingRequest": field, "UpdateThingRequest": field}
	w := newWorld(t, thingConfig(t, fields), "", nil)
	w.server.Put("a", nil)
	d, err := w.client.Describe(t.Context())
	if err != nil || d.Kinds[0].DryRun {
		t.Errorf("%+v %v", d, err)
	}
	thing := owner.Resource{Key: backend.Key{Kind: "Thing", Name: "a"}, Spec: []byte(`{"text":"t"}`)}
	_, err = w.client.Write(t.Context(), owner.Write{Resource: thing, DryRun: true})
	if !errors.Is(err, owner.ErrUnimplemented) {
		t.Errorf("%v", err)
	}
	if text := textIn(w.server.Show("a"), "text"); text != "" {
		t.Errorf("it was changed to %s", text)
	}
	fields["UpsertThingRequest"] = field
	w = newWorld(t, thingConfig(t, fields), "", nil)
	if d, err := w.client.Describe(t.Context()); err != nil || !d.Kinds[0].DryRun {
		t.Errorf("%+v %v", d, err)
	}
}
