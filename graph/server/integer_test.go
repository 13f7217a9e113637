package server_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

const measures = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { width: Float @filterable, count: Int, big: SafeInt }
`

// TestIntegers_OfAnyLengthAreAcceptedInLiterals, as in variables, where the type takes them.
func TestIntegers_OfAnyLengthAreAcceptedInLiterals(t *testing.T) {
	c := newChangingForAll(t, server.Config{})
	c.replace(measures)
	const wide = "123456789012345678901"
	for document, want := range map[string]string{
		`mutation { upsertShelf(input: {name: "a", spec: {width: ` + wide + `}}) { shelf { spec { width } } } }`:         `{"data":{"upsertShelf":{"shelf":{"spec":{"width":1.2345678901234568e+20}}}}}`,
		`mutation { upsertShelf(input: {name: "b", spec: {width: -9223372036854775809}}) { shelf { spec { width } } } }`: `{"data":{"upsertShelf":{"shelf":{"spec":{"width":-9.223372036854776e+18}}}}}`,
		`{ shelves(filter: {spec: {width: {in: [1, ` + wide + `]}}}) { totalCount } }`:                                   `"totalCount":`,
		`query($w: Float = ` + wide + `) { shelves(filter: {spec: {width: {gt: $w}}}) { totalCount } }`:                  `"totalCount":0`,
		`{ node(id: ` + wide + `) { id } }`:        `BAD_USER_INPUT`,
		`{ nodes(ids: [` + wide + `, 1]) { id } }`: `BAD_USER_INPUT`,
		`mutation { patchResource(input: {id: "x", expectedRevision: "1-1", specJSON: {a: [` + wide + `]}}) { dryRun } }`: `BAD_USER_INPUT`,
		`mutation { upsertShelf(input: {name: "a", spec: {count: ` + wide + `}}) { dryRun } }`:                            `Int cannot represent non 32-bit signed integer value: ` + wide,
		`mutation { upsertShelf(input: {name: "a", spec: {big: ` + wide + `}}) { dryRun } }`:                              `is no SafeInt`,
		`{ shelves(first: ` + wide + `) { totalCount } }`:                                                                 `Int cannot represent non 32-bit signed integer value: ` + wide,
		`mutation { upsertShelf(input: {name: ` + wide + `, spec: {}}) { dryRun } }`:                                      `String cannot represent a non string value: ` + wide,
		`{ node(id: 1.5) { id } }`: `ID cannot represent a non-string and non-integer value: 1.5`,
		`{ shelves(filter: {spec: {width: {gt: ` + strings.Repeat("9", 400) + `}}}) { totalCount } }`: `Float cannot represent non numeric value`,
	} {
		if got := c.post(t, document, nil); !strings.Contains(got, want) {
			t.Errorf("%.120s: %.500s, want %s", document, got, want)
		}
	}
}
