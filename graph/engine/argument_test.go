package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// gqlparser compares the enum values of variables without case; what it lets
// pass must not be taken for another value.
func TestAnEnumValueOfAVariableIsOneOfTheEnum(t *testing.T) {
	g := newGateway(t, shelves(t), nil)
	for name, test := range map[string]struct {
		query     string
		variables map[string]any
		message   string
		field     string
	}{
		"direction of an order": {
			`query ($v: [TokenOrder!]) { tokens(orderBy: $v) { totalCount } }`,
			map[string]any{"v": []any{map[string]any{"field": "NAME", "direction": "desc"}}},
			`"desc" is not a value of OrderDirection; ASC and DESC are`, "orderBy[0].direction",
		},
		"field of an order": {
			`query ($v: [TokenOrder!]) { tokens(orderBy: $v) { totalCount } }`,
			map[string]any{"v": map[string]any{"field": "name"}},
			`"name" is not a value of TokenOrderField; NAME, CREATED_AT`, "orderBy[0].field",
		},
		"an enum of a kind": {
			`mutation ($v: Colour) { createToken(input: {name: "t", spec: {serviceRef: "a", colour: $v}}) { token { id } } }`,
			map[string]any{"v": "dark_red"},
			`"dark_red" is not a value of Colour; DARK_RED and BLUE are`, "input.spec.colour",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := g.do(test.query, test.variables)
			if len(got.Errors) != 1 {
				t.Fatalf("%s: %v", got.Data, got.Errors)
			}
			if e := got.Errors[0]; !strings.HasPrefix(e.Message, test.message) {
				t.Errorf("message %q", e.Message)
			} else if diff := cmp.Diff([]any{test.field, failure.Steps(test.field)}, []any{e.Extensions["field"], e.Extensions["path"]}); diff != "" {
				t.Errorf("extensions (-want +got):\n%s", diff)
			} else if len(e.Path) != 1 || len(e.Locations) != 1 {
				t.Errorf("path %v, locations %v: those of the field are wanted", e.Path, e.Locations)
			}
		})
	}
}
