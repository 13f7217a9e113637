package console_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/console"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

func TestPage_WhatEverybodyMayLoadNamesNoKindNoVersionAndNoStore(t *testing.T) {
	c, err := console.New(console.Config{Version: "v9.8.7", Store: "the-store", Schema: kindstest.API(t), Kinds: kinds(), Dist: builtIn(t)})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?i)network|clouds|bookshel|v9\.8\.7|the-store`)
	for _, page := range []string{"/", "/console/plain"} {
		document := text(t, get(c, page))
		for _, m := range append([][]string{{"", page}}, loads.FindAllStringSubmatch(document, -1)...) {
			if strings.HasPrefix(m[1], "data:") {
				continue
			}
			if found := names.FindAllString(text(t, get(c, m[1])), -1); found != nil {
				t.Errorf("%s, which %s loads, names %q", m[1], page, found)
			}
		}
	}
	data := text(t, get(c, console.DataPath))
	for _, name := range []string{"Network", "clouds", "bookShelves", "v9.8.7", "the-store"} {
		if !strings.Contains(data, name) {
			t.Errorf("the data lack %s", name)
		}
	}
}

func TestPage_TheDataOfThePageSayWhatIsServedAndWhoAsks(t *testing.T) {
	c := open(t, builtIn(t))
	until := time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC)
	anonymous := map[string]any{"name": "anonymous", "groups": []any{}}
	for _, one := range []struct {
		identity *access.Identity
		want     map[string]any
	}{
		{nil, anonymous},
		{&access.Identity{Name: "token:ci", Source: "token", Groups: []string{"token:ops"}, ExpiresAt: until}, map[string]any{"name": "token:ci", "groups": []any{"token:ops"}, "expiresAt": "2026-12-24T10:00:00Z"}},
		{&access.Identity{Name: "cert:w", Source: "cert", Groups: []string{}}, map[string]any{"name": "cert:w", "groups": []any{}}},
		{nil, anonymous},
	} {
		r := httptest.NewRequest(http.MethodGet, console.DataPath, nil)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r.WithContext(access.WithCaller(r.Context(), access.Caller{Identity: one.identity})))
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one.want, got["viewer"]); diff != "" {
			t.Error(diff)
		}
		examples, _ := got["examples"].([]any)
		if got["version"] != "v9" || got["store"] != "memory" || got["endpoint"] != "/graphql" || len(examples) != len(examplesOf(t, kindstest.API(t), kinds())) {
			t.Errorf("%v %v %v, %d examples", got["version"], got["store"], got["endpoint"], len(examples))
		}
		if h := w.Header(); h.Get("Cache-Control") != "no-store" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%v", h)
		}
	}
}
