package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

const chromium = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"

// TestOnlyPagesOfTheGatewayAndAllowedOriginsReachTheAPI has the headers that
// browsers, clients and proxies send.
func TestOnlyPagesOfTheGatewayAndAllowedOriginsReachTheAPI(t *testing.T) {
	e := newEdge(t, plain, server.Config{AllowedOrigins: []string{"https://app.example.com"}})
	const image = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
	const navigation = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for name, c := range map[string]struct {
		headers []string
		served  bool
	}{
		"an image":                               {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Accept", image}, false},
		"an image of another port":               {[]string{"Sec-Fetch-Site", "same-site", "Accept", image}, false},
		"a script":                               {[]string{"Sec-Fetch-Site", "cross-site", "Accept", "*/*"}, false},
		"a fetch that names the type":            {[]string{"Sec-Fetch-Site", "cross-site", "Accept", "application/json"}, false},
		"a link":                                 {[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Accept", navigation}, false},
		"a site that is unheard of":              {[]string{"Sec-Fetch-Site", "future", "Accept", "application/json"}, false},
		"two sites":                              {[]string{"Sec-Fetch-Site", "same-origin, cross-site", "Accept", "application/json"}, false},
		"a page of the gateway":                  {[]string{"Sec-Fetch-Site", "same-origin", "Accept", "*/*"}, true},
		"an EventSource of the gateway":          {[]string{"Sec-Fetch-Site", "same-origin", "Accept", "text/event-stream"}, true},
		"the address bar":                        {[]string{"Sec-Fetch-Site", "none", "Accept", navigation + ",application/json"}, true},
		"an allowed origin":                      {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://app.example.com", "Accept", "*/*"}, true},
		"an origin that is not allowed":          {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example.com", "Accept", "*/*"}, false},
		"the gateway by another scheme":          {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://localhost", "Accept", "*/*"}, false},
		"plain HTTP: an image":                   {[]string{"Accept", image}, false},
		"plain HTTP: a script":                   {[]string{"Accept", "*/*"}, false},
		"plain HTTP: a script of an old browser": {nil, false},
		"plain HTTP: a link":                     {[]string{"Accept", navigation}, false},
		"plain HTTP: a media element":            {[]string{"Accept", "*/*", "Range", "bytes=0-", "Accept-Encoding", "identity;q=1, *;q=0"}, false},
		"plain HTTP: behind a proxy":             {[]string{"Accept", image, "X-Forwarded-For", "10.0.0.1", "X-Real-Ip", "10.0.0.1", "Via", "1.1 proxy", "X-Request-Id", "abc", "Traceparent", "00-1-2-00"}, false},
		"plain HTTP: behind other proxies":       {[]string{"Accept", image, "B3", "1", "Baggage", "a=b", "True-Client-Ip", "10.0.0.1", "Fastly-Client-Ip", "10.0.0.1", "X-Azure-Ref", "r", "X-Varnish", "1"}, false},
		"plain HTTP: a view inside an app":       {[]string{"Accept", navigation, "X-Requested-With", "org.example.app"}, false},
		"plain HTTP: client hints":               {[]string{"Accept", image, "Sec-Ch-Ua-Mobile", "?0", "Device-Memory", "8", "Save-Data", "on"}, false},
		"plain HTTP: JSON":                       {[]string{"Accept", "text/html, Application/JSON;q=0.5"}, true},
		"plain HTTP: the newer type":             {[]string{"Accept", "application/graphql-response+json"}, true},
		"plain HTTP: events":                     {[]string{"Accept", "text/event-stream", "Cache-Control", "no-cache"}, true},
		"plain HTTP: what a browser adds":        {[]string{"Accept", "*/*", "Authorization", "Basic x"}, false},
		"plain HTTP: what a proxy adds":          {[]string{"Accept", image, "X-Datadog-Trace-Id", "1", "Sentry-Trace", "2", "X-Kong-Request-Id", "3", "Newrelic", "4"}, false},
		"plain HTTP: a script of a client":       {[]string{"Accept", "*/*", "X-Requested-With", "XMLHttpRequest"}, true},
		"plain HTTP: Yoga's header":              {[]string{"Accept", image, "X-Graphql-Csrf", "1"}, true},
		"plain HTTP: Apollo's header":            {[]string{"Accept", image, "Apollo-Require-Preflight", "true"}, true},
		"plain HTTP: the gateway's own origin":   {[]string{"Accept", "*/*", "Origin", "http://localhost"}, true},
		"curl":                                   {[]string{"User-Agent", "curl/8.5.0", "Accept", "*/*"}, true},
		"Go":                                     {[]string{"User-Agent", "Go-http-client/1.1", "Accept-Encoding", "gzip"}, true},
		"no name and no type":                    {[]string{"User-Agent", ""}, true},
		"curl that wants an image":               {[]string{"User-Agent", "curl/8.5.0", "Accept", "image/png, */*"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := got("query=%7B__typename%7D", append([]string{"User-Agent", chromium}, c.headers...)...)
			w := e.do(r)
			switch {
			case c.served && (w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"data"`)):
				t.Errorf("%d %s", w.Code, w.Body)
			case !c.served && (w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"code":"FORBIDDEN"`)):
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

func TestPostsOfFormsAreRefusedAndPostsOfClientsAreServed(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	const query = `{"query":"{ __typename }"}`
	for _, c := range []struct {
		contentType string
		status      int
	}{
		{"application/json", http.StatusOK},
		{"text/plain", http.StatusForbidden},
		{"application/x-www-form-urlencoded", http.StatusForbidden},
		{"multipart/form-data; boundary=x", http.StatusForbidden},
	} {
		r := posted(query, "Content-Type", c.contentType, "User-Agent", chromium, "Accept", "*/*")
		if w := e.do(r); w.Code != c.status {
			t.Errorf("%s: %d %s", c.contentType, w.Code, w.Body)
		}
	}
}

func TestOtherPathsAreOpenToLinks(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for _, path := range []string{"/", "/healthz", "/readyz"} {
		if w := e.at(http.MethodGet, path, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
