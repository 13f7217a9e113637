package service_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
)

// TestADefaultThatIsWrittenBackIsNoChange: a client that reads effective values and sends
// them all changes nothing.
func TestADefaultThatIsWrittenBackIsNoChange(t *testing.T) {
	for name, c := range map[string]struct{ stored, sent string }{
		"given, of what was absent": {`{"title":"A"}`, `{"title":"A","colour":"blue"}`},
		"absent, of what was given": {`{"title":"A","colour":"blue"}`, `{"title":"A"}`},
		"in an object of a list":    {`{"title":"A","elements":[{"inner":{}}]}`, `{"title":"A","elements":[{"inner":{"mode":"auto"}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := setupKinds(t, nestedWidget())
			f.create("a", c.stored)
			before, at := f.stored("a"), f.position()
			writes := map[string]func() (*service.Written, error){
				"update": func() (*service.Written, error) { return f.update("a", before.Revision.String(), c.sent) },
				"patch":  func() (*service.Written, error) { return f.patch("a", before.Revision.String(), c.sent) },
				"upsert": func() (*service.Written, error) {
					return f.Upsert(t.Context(), anon, service.UpsertRequest{Identity: named("a"), Spec: json.RawMessage(c.sent)})
				},
				"apply": func() (*service.Written, error) {
					return f.apply("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}\nspec: " + c.sent + "\n")
				},
			}
			for verb, write := range writes {
				if out, err := write(); err != nil || out.Outcome != service.Unchanged || f.position() != at {
					t.Errorf("%s: %+v %v", verb, out, err)
				}
			}
			if _, err := f.Upsert(t.Context(), anon, service.UpsertRequest{
				Identity: named("a"), Spec: json.RawMessage(c.sent), Metadata: service.Metadata{Description: service.Optional[string]{Set: true, Value: "d"}},
			}); err != nil {
				t.Fatal(err)
			}
			if p, err := decodeBody(f.stored("a")); err != nil || string(p.Spec) != c.stored && len(p.Spec) != len(c.stored) || p.Metadata.Generation != 1 || p.Metadata.Description != "d" {
				t.Errorf("with another description: %s, generation %d %v", p.Spec, p.Metadata.Generation, err)
			}
			other := `{"colour":"blue","title":"B"}`
			if _, err := f.update("a", f.stored("a").Revision.String(), other); err != nil {
				t.Fatal(err)
			}
			if p, err := decodeBody(f.stored("a")); err != nil || string(p.Spec) != other || p.Metadata.Generation != 2 {
				t.Errorf("with another title: %s, generation %d %v", p.Spec, p.Metadata.Generation, err)
			}
		})
	}
}
