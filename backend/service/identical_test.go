package service_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
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
					return f.update(verb, f.stored(verb).Revision.String(), c.sent)
				},
				"patch": func(verb string) (*service.Written, error) {
					return f.patch(verb, f.stored(verb).Revision.String(), c.patch)
				},
				"upsert": func(verb string) (*service.Written, error) {
					return f.Upsert(t.Context(), service.UpsertRequest{Identity: named(verb), Spec: json.RawMessage(c.sent)})
				},
				"apply": func(verb string) (*service.Written, error) {
					return f.apply("apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: " + verb + "}\nspec: " + c.sent + "\n")
				},
			}
			for verb, write := range writes {
				f.create(verb, c.stored)
				if out, err := write(verb); err != nil || out.Outcome != service.Updated {
					t.Errorf("%s: %+v %v", verb, out, err)
				}
				if p, err := decodeBody(f.stored(verb)); err != nil || string(p.Spec) != c.sent || p.Metadata.Generation != 1 {
					t.Errorf("%s: %s is stored for %s, generation %d, %v", verb, p.Spec, c.sent, p.Metadata.Generation, err)
				}
				at := f.position()
				if out, err := write(verb); err != nil || out.Outcome != service.Unchanged || f.position() != at {
					t.Errorf("%s again: %+v %v", verb, out, err)
				}
				other := `{"colour":"blue","title":"B"}`
				if _, err := f.update(verb, f.stored(verb).Revision.String(), other); err != nil {
					t.Fatal(err)
				}
				if p, err := decodeBody(f.stored(verb)); err != nil || string(p.Spec) != other || p.Metadata.Generation != 2 {
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
		f.create("a", `{"title":"A"}`)
		f.create("b", `{"title":"A"}`)
		kind = nestedWidget()
		kind.Spec.Field("colour").Immutable = false
		kind.Spec.Field("colour").Default = "dark-red"
		other := f.with(t, kind)
		want, err := f.update("a", f.stored("a").Revision.String(), sent)
		if err != nil {
			t.Fatal(err)
		}
		got, err := other.update("b", f.stored("b").Revision.String(), sent)
		if err != nil {
			t.Fatal(err)
		}
		if want.Outcome != got.Outcome {
			t.Errorf("%s is %s by one gateway and %s by the other", sent, want.Outcome, got.Outcome)
		}
		for _, name := range []string{"a", "b"} {
			if p, err := decodeBody(f.stored(name)); err != nil || string(p.Spec) != sent {
				t.Errorf("%s: %s is stored for %s, %v", name, p.Spec, sent, err)
			}
		}
	}
}
