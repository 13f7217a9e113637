package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/kinds"
)

const clockKind = `type Clock @resource(plural: "clocks", group: "example.org", version: "v1", scope: GLOBAL) {
  spec: ClockSpec!
  status: ClockStatus
}
type ClockSpec @rule(cel: "!has(self.at) || self.at != '2000-01-01T00:00:00Z'", message: "at is not the turn of the century") {
  at: Time @sortable @default(value: "2026-01-01T00:00:00Z")
}
type ClockStatus { at: Time @index, sub: ClockPart }
type ClockPart { at: Time }
`

func clocks(t *testing.T) *gateway {
	t.Helper()
	catalogue, err := kinds.Load(&ast.Source{Name: "clock.graphqls", Input: clockKind})
	if err != nil {
		t.Fatal(err)
	}
	return newGateway(t, catalogue, nil)
}

func TestATimeIsShownInUTCAndFiltersAndOrdersGoByTheInstant(t *testing.T) {
	g := clocks(t)
	for name, at := range map[string]string{"a": "2026-05-01T12:00:00.5+02:00", "b": "2026-05-01T11:00:00Z"} {
		manifest := "apiVersion: example.org/v1\nkind: Clock\nmetadata: {name: " + name + "}\nspec: {at: '" + at + "'}\n"
		if got := g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, map[string]any{"m": manifest}); len(got.Errors) > 0 {
			t.Fatal(got.Errors)
		}
	}
	got := g.do(`{ clocks(orderBy: {field: SPEC_AT}, filter: {spec: {at: {lte: "2026-05-01T13:00:00+02:00", gt: "2026-05-01T09:00:00Z"}}}) { nodes { metadata { name } spec { at } } } }`, nil)
	want := `{"clocks":{"nodes":[{"metadata":{"name":"a"},"spec":{"at":"2026-05-01T10:00:00.5Z"}},{"metadata":{"name":"b"},"spec":{"at":"2026-05-01T11:00:00Z"}}]}}`
	if string(got.Data) != want || len(got.Errors) > 0 {
		t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
	}
	for at, says := range map[string]string{"'yesterday'": "a time in RFC 3339 form", "5": "a time in RFC 3339 form", "'2000-01-01T00:00:00Z'": "turn of the century"} {
		manifest := "apiVersion: example.org/v1\nkind: Clock\nmetadata: {name: c}\nspec: {at: " + at + "}\n"
		if got := g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, map[string]any{"m": manifest}); len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, says) {
			t.Errorf("%s: %v", at, got.Errors)
		}
	}
}

func TestWhatIsStoredForATimeAndIsNoneIsNullAndCounted(t *testing.T) {
	g := clocks(t)
	text := backend.EncodeBody([]byte(`{"version":"v1","metadata":{"generation":1},"spec":{},"status":{"at":"just now","sub":{"at":{"seconds":5}}}}`))
	put := backend.Action{Key: backend.Key{Kind: "Clock", Name: "a"}, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: text}}
	if _, err := g.store.Apply(t.Context(), backend.Batch{RequestID: "r", Deadline: g.now.Add(time.Minute), Actions: []backend.Action{put}}); err != nil {
		t.Fatal(err)
	}
	got := g.do(`{ clock(name: "a") { spec { at } status { at sub { at } } } }`, nil)
	if want := `{"clock":{"spec":{"at":null},"status":{"at":null,"sub":{"at":null}}}}`; string(got.Data) != want || len(got.Errors) > 0 {
		t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
	}
	if g.badTimes["Clock"] != 2 {
		t.Errorf("counted %v", g.badTimes)
	}
}
