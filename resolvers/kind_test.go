package resolvers_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/core"
)

func TestFields_ComeAfterTheirObjectsAndHaveBothNames(t *testing.T) {
	w := setup(t)
	all, err := w.Query().Kinds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	renamed := 0
	for _, k := range all {
		fields, err := w.Kind().Fields(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{"spec": true, "status": true}
		for _, f := range fields {
			object := f.StoredPath[:strings.LastIndex(f.StoredPath, ".")]
			if !seen[object] {
				t.Errorf("%s: %s comes before %s", k.Name, f.StoredPath, object)
			}
			seen[f.StoredPath] = true
			if f.Path != k.APIPath(f.StoredPath) || !strings.HasSuffix(f.Path, "."+f.Name) {
				t.Errorf("%s: %s has the path %s and the name %s", k.Name, f.StoredPath, f.Path, f.Name)
			}
			if f.Path != f.StoredPath {
				renamed++
			}
		}
	}
	if renamed == 0 {
		t.Error("no field has another name in the API")
	}
}

func TestColumns_HavePathsOfTheAPI(t *testing.T) {
	w := setup(t)
	for _, k := range w.svc.Kinds() {
		columns, err := w.Kind().Columns(t.Context(), k)
		if err != nil || len(columns) != len(k.Columns) {
			t.Fatalf("%s: %d columns of %d, %v", k.Name, len(columns), len(k.Columns), err)
		}
		for i, c := range columns {
			if c.Path != k.APIPath(k.Columns[i].Path) {
				t.Errorf("%s: a column has the path %s", k.Name, c.Path)
			}
		}
	}
}

func TestUpdateKind_SaysWhoOwnsTheKind(t *testing.T) {
	w := setup(t)
	id := "m"
	for _, controlled := range []bool{true, false} {
		out, err := w.Mutation().UpdateKind(t.Context(), core.UpdateKindInput{ClientMutationID: &id, Kind: "networks", Controlled: controlled})
		if err != nil || out.Kind.Name != "Network" || *out.ClientMutationID != id {
			t.Fatalf("%+v %v", out, err)
		}
		got, err := w.Kind().Controlled(t.Context(), out.Kind)
		if err != nil || *got != controlled {
			t.Errorf("controlled: %v %v, want %v", *got, err, controlled)
		}
	}
}

func TestUpdateKind_RefusesWithAPathInItsInput(t *testing.T) {
	w := setup(t)
	_, err := w.Mutation().UpdateKind(t.Context(), core.UpdateKindInput{Kind: "Nothing"})
	w.refused("an unknown kind", err, failure.CodeBadUserInput, "input.kind")
	long := strings.Repeat("ü", 129)
	_, err = w.Mutation().UpdateKind(t.Context(), core.UpdateKindInput{ClientMutationID: &long, Kind: "Network"})
	w.refused("a long id", err, failure.CodeValidationFailed, "input.clientMutationId")
}

func TestService_IsNullWhereTheGatewayStoresTheKind(t *testing.T) {
	w := setup(t)
	for _, k := range w.svc.Kinds() {
		if got, err := w.Kind().Service(t.Context(), k); got != nil || err != nil {
			t.Errorf("%s: %+v %v", k.Name, got, err)
		}
	}
}
