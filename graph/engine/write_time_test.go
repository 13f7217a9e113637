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
type ClockSpec @rule(cel: "!has(self.at) || self.at != timestamp('2000-01-01T00:00:00Z')", message: "at is not the turn of the century") {
  at: Time @sortable @default(value: "2026-01-01T00:00:00Z")
}
type ClockStatus { at: Time @filterable, sub: ClockPart }
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
	if want := `{"clock":{"spec":{"at":"2026-01-01T00:00:00Z"},"status":{"at":null,"sub":{"at":null}}}}`; string(got.Data) != want || len(got.Errors) > 0 {
		t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
	}
	if g.badTimes["Clock"] != 2 {
		t.Errorf("counted %v", g.badTimes)
	}
}

// What comes by a manifest and what comes by an input is one instant, whatever its
// offset: for immutability, keys of lists, rules and identity.
func TestEqualInstantsAreEqualWhereverTheyComeFrom(t *testing.T) {
	catalogue, err := kinds.Load(&ast.Source{Name: "moment.graphqls", Input: `type Moment @resource(plural: "moments", group: "example.org", version: "v1", scope: GLOBAL) { spec: MomentSpec! }
type MomentSpec @rule(cel: "self.starts <= self.ends", message: "it ends after it starts") {
  starts: Time @default(value: "2020-01-01T02:00:00+02:00") @immutable
  ends: Time @default(value: "2030-01-01T00:00:00Z")
  stops: [Stop!] @list(type: MAP, keys: ["at"]) @constraint(maxItems: 5)
}
type Stop { at: Time! }
`})
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	apply := func(spec string) answer {
		return g.do(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, map[string]any{"m": "apiVersion: example.org/v1\nkind: Moment\nmetadata: {name: a}\nspec: " + spec + "\n"})
	}
	for _, c := range []struct{ spec, want string }{
		{`{starts: "2026-01-01T02:00:00+02:00"}`, "CREATED"},
		{`{starts: "2026-01-01T00:00:00.000Z"}`, "UNCHANGED"},
		{`{starts: "2025-12-31t23:00:00-01:00"}`, "UNCHANGED"},
		{`{starts: "2026-01-01T00:00:01Z"}`, "cannot be changed"},
		{`{starts: "2026-01-01T00:00:00Z", ends: "2026-01-01T00:00:00.5Z"}`, "UPDATED"},
		{`{starts: "2026-01-01T00:00:00Z", ends: "2026-01-01T00:30:00+01:00"}`, "it ends after it starts"},
		{`{starts: "2026-01-01T00:00:00Z", stops: [{at: "2026-02-01T00:00:00Z"}, {at: "2026-02-01T01:00:00+01:00"}]}`, "repeats element 0"},
		{`{starts: "9999-12-31T23:59:59-01:00"}`, "years 0000 to 9999"},
	} {
		got := apply(c.spec)
		if text := string(got.Data) + got.Errors.Error(); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s; want %s", c.spec, text, c.want)
		}
	}
	got := g.do(`mutation { createMoment(input: {name: "b", spec: {}}) { moment { id } } patchMoment(input: {name: "b", expectedRevision: "`+"x"+`", spec: {}}) { moment { id } } }`, nil)
	if len(got.Errors) != 1 {
		t.Errorf("%v", got.Errors)
	}
}

func TestARequiredTimeThatIsNoneIsAnErrorOfItsField(t *testing.T) {
	catalogue, err := kinds.Load(&ast.Source{Name: "due.graphqls", Input: `type Due @resource(plural: "dues", group: "example.org", version: "v1", scope: GLOBAL) { spec: DueSpec! }
type DueSpec { at: Time! }
`})
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	put := backend.Action{Key: backend.Key{Kind: "Due", Name: "a"}, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte(`{"version":"v1","metadata":{"generation":1},"spec":{"at":"soon"}}`))}}
	if _, err := g.store.Apply(t.Context(), backend.Batch{RequestID: "r", Deadline: g.now.Add(time.Minute), Actions: []backend.Action{put}}); err != nil {
		t.Fatal(err)
	}
	got := g.do(`{ due(name: "a") { spec { at } } }`, nil)
	if string(got.Data) != `{"due":null}` || len(got.Errors) != 1 || got.Errors[0].Path.String() != "due.spec.at" || !strings.Contains(got.Errors[0].Message, "cannot read") {
		t.Errorf("%s %v", got.Data, got.Errors)
	}
}
