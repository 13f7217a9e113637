package filter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// setupReported has resources with conditions, of which each is named by what it has:
// the one that was never reported is none.
func setupReported(t *testing.T) *servicetest.Fixture {
	t.Helper()
	k := servicetest.WithConditions(servicetest.Widget())
	shape := k.Status.Field("conditions").Shape
	shape.Fields = append(shape.Fields, descriptor.Field{Name: "reason", Type: descriptor.TypeString})
	store := servicetest.OpenMemory(t)
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{k}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	f := &servicetest.Fixture{Service: s, T: t, Store: store}
	for name, conditions := range map[string]string{
		"bare":    `[]`,
		"failed":  `[{"type":"Ready","status":"False","reason":"Failed"},{"type":"Synced","status":"True","reason":"Done"}]`,
		"long":    `[{"type":"Ready","status":"False","reason":"` + strings.Repeat("x", 257) + `"}]`,
		"ready":   `[{"type":"Ready","status":"True","reason":"Done"},{"type":"Synced","status":"False","reason":"Failed"}]`,
		"silent":  `[{"type":"Ready","status":"True"}]`,
		"unknown": `[{"type":"Ready","status":"Unknown","reason":"Asking"},{"type":"Readying","status":"True","reason":"Z"}]`,
	} {
		w := f.CreateWidget(name, `{"title":"A"}`)
		_, err := f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named(name), ExpectedRevision: w.Resource.Stored.Revision.String(), Status: json.RawMessage(`{"conditions":` + conditions + `}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	f.CreateWidget("none", `{"title":"A"}`)
	return f
}

func TestFilter_ConditionsAreFoundByStatusAndReason(t *testing.T) {
	t.Run("in the store", func(t *testing.T) { testConditions(t, setupReported(t)) })
	t.Run("in the index", func(t *testing.T) {
		f := setupReported(t)
		f.ServeIndexed()
		testConditions(t, f)
	})
}

func testConditions(t *testing.T, f *servicetest.Fixture) {
	for filter, want := range map[string]string{
		`{"type":"Ready"}`:                                                                  "failed long ready silent unknown",
		`{"type":"Ready","status":null}`:                                                    "failed long ready silent unknown",
		`{"type":"Synced"}`:                                                                 "failed ready",
		`{"type":"Ready","status":{"eq":"True"}}`:                                           "ready silent",
		`{"type":"Ready","status":{"ne":"True"}}`:                                           "bare failed long none unknown",
		`{"type":"Ready","status":{"in":["True","Unknown"]}}`:                               "ready silent unknown",
		`{"type":"Ready","status":{"notIn":["True","False"]}}`:                              "bare none unknown",
		`{"type":"Ready","status":{"startsWith":"Un"}}`:                                     "unknown",
		`{"type":"Ready","status":{"contains":"s"}}`:                                        "failed long",
		`{"type":"Ready","status":{"gt":"False"}}`:                                          "ready silent unknown",
		`{"type":"Ready","status":{"gte":"True","lt":"U"}}`:                                 "ready silent",
		`{"type":"Ready","status":{"lte":"False"}}`:                                         "failed long",
		`{"type":"Ready","status":{"isNull":true}}`:                                         "bare none",
		`{"type":"Ready","status":{"isNull":false}}`:                                        "failed long ready silent unknown",
		`{"type":"Ready","reason":{"eq":"Failed"}}`:                                         "failed",
		`{"type":"Ready","reason":{"in":["Failed","Done"]}}`:                                "failed ready",
		`{"type":"Ready","reason":{"ne":"Failed"}}`:                                         "bare long none ready silent unknown",
		`{"type":"Ready","reason":{"isNull":true}}`:                                         "bare long none silent",
		`{"type":"Ready","reason":{"contains":"n"}}`:                                        "ready unknown",
		`{"type":"Ready","reason":{"lt":"E"}}`:                                              "ready unknown",
		`{"type":"Ready","status":{"eq":"False"},"reason":{"startsWith":"F"}}`:              "failed",
		`{"type":"Ready","status":{"eq":"True"},"reason":{"eq":"Failed"}}`:                  "",
		`{"type":"Ready","status":{"eq":"False"}},{"type":"Synced","status":{"eq":"True"}}`: "failed",
	} {
		page, err := f.Reader.List(t.Context(), query.ListRequest{Kind: "Widget", Filter: json.RawMessage(`{"conditions":[` + filter + `]}`)})
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		var got []string
		for _, e := range page.Edges {
			got = append(got, e.Resource.Stored.Name)
		}
		if n, err := page.TotalCount(t.Context()); strings.Join(got, " ") != want || err != nil || n != len(got) {
			t.Errorf("%s keeps %q, %d %v, want %q", filter, got, n, err, want)
		}
	}
}
