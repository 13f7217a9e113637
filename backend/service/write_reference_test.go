package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// rentals are kinds as the loader makes them of @ref.
func rentals() []descriptor.Kind {
	name := func(field string) descriptor.Field {
		return descriptor.Field{Name: field, Type: descriptor.TypeString, Constraint: descriptor.Constraint{MinLength: new(1), MaxLength: new(253), Format: descriptor.FormatName}}
	}
	others, stays := name("otherRefs"), descriptor.Field{Name: "stays", Type: descriptor.TypeObject, List: true, ListType: descriptor.ListAtomic}
	others.List, others.ListType = true, descriptor.ListSet
	stays.Shape = &descriptor.Shape{Name: "Stay", Fields: []descriptor.Field{name("homeRef")}}
	home, rental := servicetest.Widget(), servicetest.Widget()
	home.Name, home.Singular, home.Plural = "Home", "home", "homes"
	rental.Name, rental.Singular, rental.Plural = "Rental", "rental", "rentals"
	home.Spec, home.Status, home.FilterableFields = &descriptor.Shape{Name: "HomeSpec"}, nil, nil
	rental.Spec = &descriptor.Shape{Name: "RentalSpec", Fields: []descriptor.Field{name("homeRef"), others, stays, {Name: "note", Type: descriptor.TypeString}}}
	rental.Status, rental.FilterableFields = nil, nil
	for _, path := range []string{"spec.homeRef", "spec.otherRefs", "spec.stays.homeRef"} {
		rental.References = append(rental.References, descriptor.Reference{Path: path, Kind: "Home", Field: "home"})
	}
	return []descriptor.Kind{home, rental}
}

func TestWrite_AReferenceThatNoResourceCanHaveIsRefused(t *testing.T) {
	f := setupKinds(t, rentals()...)
	id := kind.Identity{Kind: "Rental", Name: "a"}
	for _, c := range []struct{ spec, want string }{
		{`{"homeRef":"No Name"}`, "spec.homeRef format"},
		{`{"homeRef":"UPPER"}`, "spec.homeRef format"},
		{`{"homeRef":"-a"}`, "spec.homeRef format"},
		{`{"homeRef":"a\nWaiting for nothing"}`, "spec.homeRef format"},
		{`{"homeRef":""}`, "spec.homeRef minLength"},
		{`{"homeRef":"` + strings.Repeat("a", 254) + `"}`, "spec.homeRef maxLength"},
		{`{"otherRefs":["a","B","c."]}`, "spec.otherRefs[1] format; spec.otherRefs[2] format"},
		{`{"stays":[{"homeRef":"a"},{"homeRef":"b/c"}]}`, "spec.stays[1].homeRef format"},
	} {
		_, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: id, Spec: json.RawMessage(c.spec)})
		if got := servicetest.ViolationPaths(servicetest.WantCode(t, err, failure.CodeValidationFailed)); got != c.want {
			t.Errorf("%s: %s, want %s", c.spec, got, c.want)
		}
	}
	longest := strings.Repeat("a", 253)
	if _, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: id, Spec: map[string]any{"homeRef": longest, "otherRefs": []any{"a.b-c", "0"}}}); err != nil {
		t.Errorf("names: %v", err)
	}
}

// A store can have references of a time at which any text was one.
func TestWrite_AStoredReferenceThatIsNoNameIsNoObstacle(t *testing.T) {
	f := setupKinds(t, rentals()...)
	key := backend.Key{Kind: "Rental", Namespace: "default", Name: "a"}
	f.Put(key, backend.Put{UID: "1", Caller: true, Body: backend.EncodeBody([]byte(`{"version":"v1","metadata":{"generation":1},"spec":{"homeRef":"No Name","otherRefs":["UPPER","b"]}}`))})
	id := kind.Identity{Kind: "Rental", Name: "a"}
	patch := func(patch string) error {
		r, err := f.Reader.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Writer.Patch(t.Context(), service.PatchRequest{Identity: id, ExpectedRevision: r.Stored.Revision.String(), Patch: json.RawMessage(patch)})
		return err
	}
	for _, accepted := range []string{`{"note":"x"}`, `{"otherRefs":["UPPER"]}`} {
		if err := patch(accepted); err != nil {
			t.Errorf("%s: %v", accepted, err)
		}
	}
	for refused, want := range map[string]string{`{"homeRef":"UPPER"}`: "spec.homeRef format", `{"otherRefs":["UPPER","OTHER"]}`: "spec.otherRefs[1] format"} {
		if got := servicetest.ViolationPaths(servicetest.WantCode(t, patch(refused), failure.CodeValidationFailed)); got != want {
			t.Errorf("%s: %s, want %s", refused, got, want)
		}
	}
	if err := patch(`{"homeRef":"b","otherRefs":null}`); err != nil {
		t.Error(err)
	}
	got, err := f.Reader.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"homeRef":"b","note":"x"}`, specText(t, got.Stored)); diff != "" {
		t.Error(diff)
	}
}
