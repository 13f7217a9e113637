package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/sluicegw/sluice/graph/client"
)

// warned is a client of a server, and what it was told of its version.
func warned(t *testing.T, answer http.HandlerFunc) (*client.Client, *[]client.Deprecation) {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	var warnings []client.Deprecation
	c, err := client.New(client.Config{
		Server: srv.URL, API: "v1.0", Deprecated: func(d client.Deprecation) {
			d.Versions = d.Versions[len(srv.URL):]
			warnings = append(warnings, d)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, &warnings
}

func TestDeprecation_IsReportedOnceByRequests(t *testing.T) {
	january, july := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), time.Date(2026, 7, 31, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		deprecation, sunset string
		want                client.Deprecation
		text                string
	}{
		"with a sunset": {
			"@1769817600", "Fri, 31 Jul 2026 00:00:00 GMT", client.Deprecation{Since: january, Sunset: july},
			"version v1.0 of the API is deprecated from 2026-01-31 on, and may be withdrawn after 2026-07-31; see /versions",
		},
		"without": {
			"@1769817600;note=1", "", client.Deprecation{Since: january},
			"version v1.0 of the API is deprecated from 2026-01-31 on; see /versions",
		},
		"by another gateway": {
			"true", "never", client.Deprecation{}, "version v1.0 of the API is deprecated; see /versions",
		},
	} {
		speaker, warnings := warned(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Deprecation", c.deprecation)
			w.Header().Set("Sunset", c.sunset)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"data":{}}`))
		})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _ = speaker.Do(t.Context(), "{ a }", nil, nil) })
		}
		all.Wait()
		c.want.API, c.want.Versions = "v1.0", "/versions"
		if len(*warnings) != 1 || !(*warnings)[0].Since.Equal(c.want.Since) || !(*warnings)[0].Sunset.Equal(c.want.Sunset) ||
			(*warnings)[0].API != c.want.API || (*warnings)[0].String() != c.text {
			t.Errorf("%s: %v", name, *warnings)
		}
	}
	speaker, warnings := warned(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Sunset", "Fri, 31 Jul 2026 00:00:00 GMT") // of something else
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"data":{}}`))
	})
	if err := speaker.Do(t.Context(), "{ a }", nil, nil); err != nil || len(*warnings) != 0 {
		t.Errorf("a version that is not deprecated: %v %v", *warnings, err)
	}
}

func TestDeprecation_IsReportedByStreams(t *testing.T) {
	const why = `{"version":"v1.0","deprecated":"2026-01-31","sunset":"2026-07-31","why":"use v1.2"}`
	for payload, want := range map[string]string{
		why: "version v1.0 of the API is deprecated from 2026-01-31 on, and may be withdrawn after 2026-07-31: use v1.2; see /versions",
		`{"version":"v1.0","deprecated":"2026-01-31"}`: "version v1.0 of the API is deprecated from 2026-01-31 on; see /versions",
		`{"version":"v1.0"}`:                           "",
		`null`:                                         "",
		`"deprecated"`:                                 "",
	} {
		speaker, warnings := warned(t, func(w http.ResponseWriter, r *http.Request) {
			conn, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _, _ = conn.ReadMessage()
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"connection_ack","payload":`+payload+`}`))
			_, _, _ = conn.ReadMessage()
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"id":"1","type":"complete"}`))
		})
		ctx, stop := context.WithCancel(t.Context())
		ends := 0
		for range speaker.Changes(ctx, client.ChangesRequest{Lost: func(error) {
			if ends++; ends == 2 {
				stop()
			}
		}}) {
			continue
		}
		stop()
		texts := ""
		for _, d := range *warnings {
			texts += d.String()
		}
		if texts != want {
			t.Errorf("%s: %q", payload, texts)
		}
	}
}
