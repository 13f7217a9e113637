// Package kindstest provides catalogues for tests, such as the one that is built into the gateway.
package kindstest

import (
	"slices"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

// embedded returns the descriptors and the API of the embedded catalogue. The catalogue is read only once for all tests
// of a package, since that takes a quarter of a second. The result must not be changed.
var embedded = sync.OnceValues(func() (out struct {
	kinds []descriptor.Kind
	api   *ast.Schema
}, err error) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		return out, err
	}
	out.kinds = catalogue.Descriptors()
	out.api, err = catalogue.API()
	return out, err
})

// Kinds returns the descriptors of the embedded catalogue. The slice belongs to the caller. Everything that its
// elements point to is shared and must not be changed.
func Kinds(t testing.TB) []descriptor.Kind {
	t.Helper()
	catalogue, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(catalogue.kinds)
}

// API returns the schema that is derived from the embedded catalogue. It is shared and must not be changed.
func API(t testing.TB) *ast.Schema {
	t.Helper()
	catalogue, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	return catalogue.api
}
