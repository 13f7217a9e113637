package service_test

import (
	"fmt"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestWrite_WholeNumbersAreStoredWithoutFractionAndExponent(t *testing.T) {
	f := setup(t)
	for i, c := range []struct{ spec, stored string }{
		{`{"title":"t","weight":100.0,"bytes":1e3}`, `{"bytes":1000,"title":"t","weight":100}`},
		{`{"title":"t","weight":1E2,"bytes":-9007199254740991.0}`, `{"bytes":-9007199254740991,"title":"t","weight":100}`},
		{`{"title":"t","weight":1000e-1,"bytes":-0,"ratio":1.0}`, `{"bytes":0,"ratio":1.0,"title":"t","weight":100}`},
	} {
		name := fmt.Sprint("w", i)
		spec := func() string {
			raw, err := backend.DecodeBody(f.Stored(name).Body)
			if err != nil {
				t.Fatal(err)
			}
			return gjson.GetBytes(raw, "spec").Raw
		}
		revision := f.CreateWidget(name, c.spec).Resource.Stored.Revision.String()
		if got := spec(); got != c.stored {
			t.Errorf("%s is stored as %s, want %s", c.spec, got, c.stored)
		}
		if _, err := f.patch(name, revision, `{"weight":200.0,"bytes":2e0,"ratio":1.5}`); err != nil {
			t.Fatal(err)
		}
		if got, want := spec(), `{"bytes":2,"ratio":1.5,"title":"t","weight":200}`; got != want {
			t.Errorf("a patch stores %s, want %s", got, want)
		}
		manifest := "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: " + name + "}\nspec: {title: t, weight: 300.0, bytes: 3e0}"
		if _, err := f.apply(manifest); err != nil {
			t.Fatal(err)
		}
		if got, want := spec(), `{"bytes":3,"title":"t","weight":300}`; got != want {
			t.Errorf("a manifest stores %s, want %s", got, want)
		}
		if got := servicetest.PageNames(f.MustList(query.ListRequest{})); len(got) != i+1 {
			t.Errorf("%q can be read, want %d", got, i+1)
		}
	}
}
