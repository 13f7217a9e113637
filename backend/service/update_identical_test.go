package service_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestIdentical_AValueThatEqualsTheDefaultIsStored: what is sent is what is stored, by every verb, also where it
// equals the default or leaves out what did. Then the user's decision outlives a change of the default. Only the
// stored forms decide what is unchanged; the generation counts changes of the effective spec.
func TestIdentical_AValueThatEqualsTheDefaultIsStored(t *testing.T) {
	const patchOfNone = `{"colour":null}`
	for name, c := range map[string]struct{ stored, sent, patch string }{
		"given, of what was absent": {`{"title":"A"}`, `{"colour":"blue","title":"A"}`, `{"colour":"blue"}`},
		"absent, of what was given": {`{"colour":"blue","title":"A"}`, `{"title":"A"}`, patchOfNone},
		"in an object of a list": {
			`{"elements":[{"inner":{}}],"title":"A"}`, `{"elements":[{"inner":{"mode":"auto"}}],"title":"A"}`,
			`{"elements":[{"inner":{"mode":"auto"}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := setupKinds(t, nestedWidget())
			writes := map[string]func(verb string) (*service.Written, error){
				"update": func(verb string) (*service.Written, error) {
					return f.UpdateWidget(verb, f.Stored(verb).Revision.String(), c.sent)
				},
				"patch": func(verb string) (*service.Written, error) {
					return f.patch(verb, f.Stored(verb).Revision.String(), c.patch)
				},
				"upsert": func(verb string) (*service.Written, error) {
					return f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: servicetest.Named(verb), Spec: json.RawMessage(c.sent)})
				},
				"apply": func(verb string) (*service.Written, error) {
					return f.apply("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: " + verb + "}\nspec: " + c.sent + "\n")
				},
			}
			for verb, write := range writes {
				f.CreateWidget(verb, c.stored)
				if out, err := write(verb); err != nil || out.Outcome != service.Updated {
					t.Errorf("%s: %+v %v", verb, out, err)
				}
				if p, err := decodeBody(f.Stored(verb)); err != nil || string(p.Spec) != c.sent || p.Metadata.Generation != 1 {
					t.Errorf("%s: %s is stored for %s, generation %d, %v", verb, p.Spec, c.sent, p.Metadata.Generation, err)
				}
				at := f.LogPosition()
				if out, err := write(verb); err != nil || out.Outcome != service.Unchanged || f.LogPosition() != at {
					t.Errorf("%s again: %+v %v", verb, out, err)
				}
				other := `{"colour":"blue","title":"B"}`
				if _, err := f.UpdateWidget(verb, f.Stored(verb).Revision.String(), other); err != nil {
					t.Fatal(err)
				}
				if p, err := decodeBody(f.Stored(verb)); err != nil || string(p.Spec) != other || p.Metadata.Generation != 2 {
					t.Errorf("%s, then another title: %s, generation %d %v", verb, p.Spec, p.Metadata.Generation, err)
				}
			}
		})
	}
}

// TestIdentical_GatewaysWithOtherDefaultsAgree: two gateways whose catalogues have other defaults answer a write in
// the same way, and show what was sent.
func TestIdentical_GatewaysWithOtherDefaultsAgree(t *testing.T) {
	for _, sent := range []string{`{"colour":"blue","title":"A"}`, `{"colour":"dark-red","title":"A"}`, `{"title":"A"}`} {
		kind := nestedWidget()
		kind.Spec.Field("colour").Immutable = false
		f := setupKinds(t, kind)
		f.CreateWidget("a", `{"title":"A"}`)
		f.CreateWidget("b", `{"title":"A"}`)
		kind = nestedWidget()
		kind.Spec.Field("colour").Immutable = false
		kind.Spec.Field("colour").Default = "dark-red"
		other := f.with(t, kind)
		want, err := f.UpdateWidget("a", f.Stored("a").Revision.String(), sent)
		if err != nil {
			t.Fatal(err)
		}
		got, err := other.UpdateWidget("b", f.Stored("b").Revision.String(), sent)
		if err != nil {
			t.Fatal(err)
		}
		if want.Outcome != got.Outcome {
			t.Errorf("%s is %s by one gateway and %s by the other", sent, want.Outcome, got.Outcome)
		}
		for _, name := range []string{"a", "b"} {
			if p, err := decodeBody(f.Stored(name)); err != nil || string(p.Spec) != sent {
				t.Errorf("%s: %s is stored for %s, %v", name, p.Spec, sent, err)
			}
		}
	}
}
