// Package kindstest gives tests the catalogue that is compiled into the gateway.
package kindstest

import (
	"slices"
	"sync"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

// embedded is what the embedded catalogue makes. It is read once for all tests of a
// package, which takes a quarter of a second, and must not be changed.
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

// Kinds are the descriptors of the embedded catalogue. The slice is the caller's; what it
// leads to is shared.
func Kinds(t testing.TB) []descriptor.Kind {
	t.Helper()
	catalogue, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(catalogue.kinds)
}

// API is the schema that is derived from the embedded catalogue. It is shared.
func API(t testing.TB) *ast.Schema {
	t.Helper()
	catalogue, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	return catalogue.api
}
