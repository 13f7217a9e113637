// Package kindstest gives tests the catalogue that is compiled into the gateway.
package kindstest

import (
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

// Kinds are the descriptors of the embedded catalogue.
func Kinds(t testing.TB) []descriptor.Kind {
	t.Helper()
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return catalogue.Descriptors()
}

// API is the schema that is derived from the embedded catalogue.
func API(t testing.TB) *ast.Schema {
	t.Helper()
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	api, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	return api
}
