package server_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/graph/transport"
)

// httpRequest is a request as a client sends it.
type httpRequest struct {
	method, query, body string
	header              map[string]string
}

func (e edge) do(r httpRequest) *httptest.ResponseRecorder {
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	req := httptest.NewRequest(r.method, "http://localhost/graphql?"+r.query, body)
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, req)
	return w
}

// at asks for any path.
func (e edge) at(method, path string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "http://localhost"+path, nil)
	e.identify(req.Header)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, req)
	return w
}

func posted(body string, header ...string) httpRequest {
	r := httpRequest{method: http.MethodPost, body: body, header: map[string]string{"Content-Type": "application/json"}}
	for i := 0; i < len(header); i += 2 {
		r.header[header[i]] = header[i+1]
	}
	return r
}

func got(query string, header ...string) httpRequest {
	r := posted("", header...)
	r.method, r.query = http.MethodGet, query
	delete(r.header, "Content-Type")
	return r
}

const (
	plainType    = "application/json; charset=utf-8"
	responseType = "application/graphql-response+json; charset=utf-8"
	eventsType   = "text/event-stream; charset=utf-8"
)

func TestStatusAndMediaTypeFollowTheSpecification(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for name, c := range map[string]struct {
		httpRequest
		status          int
		media, contains string
	}{
		"a query":                           {posted(`{"query":"{ __typename }"}`), 200, plainType, `{"data":{"__typename":"Query"}}`},
		"the newer type":                    {posted(`{"query":"{ __typename }"}`, "Accept", "application/graphql-response+json"), 200, responseType, `"data"`},
		"a query by GET":                    {got("query=%7B__typename%7D"), 200, plainType, `"data"`},
		"with a charset":                    {posted(`{"query":"{ __typename }"}`, "Content-Type", "application/json; charset=UTF-8"), 200, plainType, `"data"`},
		"an invalid document":               {posted(`{"query":"{ nothing }"}`), 200, plainType, "GRAPHQL_VALIDATION_FAILED"},
		"the same of the newer type":        {posted(`{"query":"{ nothing }"}`, "Accept", "application/graphql-response+json"), 400, responseType, "GRAPHQL_VALIDATION_FAILED"},
		"a document that does not parse":    {posted(`{"query":"{"}`, "Accept", "application/graphql-response+json"), 400, responseType, "GRAPHQL_PARSE_FAILED"},
		"malformed JSON":                    {posted(`{"query":"secret`), 400, plainType, "not valid JSON"},
		"no query":                          {posted(`{}`), 400, plainType, "neither a query nor a documentId"},
		"a variable of another type":        {posted(`{"query":"query($n: Int) { networks(first: $n) { totalCount } }","variables":{"n":"x"}}`), 200, plainType, "GRAPHQL_VALIDATION_FAILED"},
		"a form":                            {posted("query=x", "Content-Type", "application/x-www-form-urlencoded"), 415, plainType, "application/json"},
		"plain text":                        {posted(`{"query":"{ __typename }"}`, "Content-Type", "text/plain"), 415, plainType, "application/json"},
		"another charset":                   {posted(`{"query":"{ __typename }"}`, "Content-Type", "application/json; charset=latin1"), 415, plainType, "UTF-8"},
		"another method":                    {httpRequest{method: http.MethodPut}, 405, plainType, "use POST"},
		"a mutation by GET":                 {got("query=mutation%7B__typename%7D"), 405, plainType, "by POST"},
		"no type that we have":              {posted(`{"query":"{ __typename }"}`, "Accept", "text/html"), 406, plainType, "Accept names neither"},
		"an invalid document and such":      {posted(`{"query":"{ nothing }"}`, "Accept", "text/html"), 400, plainType, "GRAPHQL_VALIDATION_FAILED"},
		"a subscription as JSON":            {posted(`{"query":"subscription { networkChanges { type } }"}`), 406, plainType, "text/event-stream"},
		"a subscription as anything":        {posted(`{"query":"subscription { networkChanges { type } }"}`, "Accept", "*/*"), 406, plainType, "text/event-stream"},
		"a query as events":                 {posted(`{"query":"{ __typename }"}`, "Accept", "text/event-stream"), 200, eventsType, `data: {"data":{"__typename":"Query"}}`},
		"an invalid document as events":     {posted(`{"query":"{ nothing }"}`, "Accept", "text/event-stream"), 200, eventsType, "event: complete\ndata:"},
		"a query of one that lists all":     {posted(`{"query":"{ __typename }"}`, "Accept", "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed"), 200, responseType, `"data"`},
		"@defer":                            {posted(`{"query":"{ ... @defer { __typename } }"}`), 200, plainType, "Unknown directive"},
		"several requests at once":          {posted(`[{"query":"{ __typename }"}]`), 400, plainType, "a JSON object"},
		"an operation that is not there":    {posted(`{"query":"query A { __typename }","operationName":"B"}`), 200, plainType, "operation B not found"},
		"two operations and no name":        {posted(`{"query":"query A { __typename } query B { __typename }"}`), 200, plainType, "operationName must say which"},
		"an unknown hash":                   {got(`extensions={"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("0", 64) + `"}}`), 200, plainType, "PERSISTED_QUERY_NOT_FOUND"},
		"a field that fails":                {posted(`{"query":"{ networks(first: -1) { totalCount } }"}`), 200, plainType, "BAD_USER_INPUT"},
		"an introspection":                  {posted(`{"query":"{ __schema { queryType { name } } }"}`), 200, plainType, `"Query"`},
		"a subscription as events, refused": {got("query=subscription%7BnetworkChanges(after:%22x%22)%7Btype%7D%7D", "Accept", "text/event-stream"), 200, eventsType, "CURSOR_INVALID"},
	} {
		t.Run(name, func(t *testing.T) {
			w := e.do(c.httpRequest)
			if w.Code != c.status || w.Header().Get("Content-Type") != c.media || !strings.Contains(w.Body.String(), c.contains) {
				t.Errorf("%d %s %s; want %d %s with %s", w.Code, w.Header().Get("Content-Type"), w.Body, c.status, c.media, c.contains)
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Error("the answer quotes the request")
			}
			if c.status >= 400 && strings.Contains(w.Body.String(), `"data"`) {
				t.Error("a request error has no data")
			}
			if (c.status == http.StatusMethodNotAllowed) != (w.Header().Get("Allow") != "") {
				t.Errorf("Allow: %s", w.Header().Get("Allow"))
			}
		})
	}
}

func TestAnswersAreCompressedWhereTheClientAcceptsIt(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	const query = `{"query":"{ __schema { types { name } } }"}`
	want := e.do(posted(query)).Body.String()
	w := e.do(posted(query, "Accept-Encoding", "gzip, deflate, br"))
	zip, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(zip); err != nil || string(text) != want || w.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("%v %v %.100s", err, w.Header(), text)
	}
	for _, accept := range []string{"br", "gzip;q=0", "identity"} {
		if w := e.do(posted(query, "Accept-Encoding", accept)); w.Header().Get("Content-Encoding") != "" || w.Body.String() != want {
			t.Errorf("%s: %v", accept, w.Header())
		}
	}
	if w := e.do(posted(`{"query":"{ __typename }"}`, "Accept-Encoding", "gzip")); w.Header().Get("Content-Encoding") != "" {
		t.Error("a small answer is compressed")
	}
}

func TestPagesOfConfiguredOriginsMayReadAnswers(t *testing.T) {
	e := newEdge(t, plain, server.Config{AllowedOrigins: []string{"https://app.example.com"}})
	preflight := func(origin string) *httptest.ResponseRecorder {
		return e.do(httpRequest{method: http.MethodOptions, header: map[string]string{
			"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,sentry-trace,traceparent,x-datadog-trace-id",
		}})
	}
	if w := preflight("https://app.example.com"); w.Code >= 300 || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.com" || w.Header().Get("Access-Control-Allow-Headers") != "content-type,sentry-trace,traceparent,x-datadog-trace-id" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := preflight("https://evil.example.com"); w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := e.do(posted(`{"query":"{ __typename }"}`, "Origin", "https://app.example.com")); w.Header().Get("Access-Control-Allow-Origin") == "" || !strings.Contains(w.Header().Get("Vary"), "Origin") && !strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Origin") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func hashed(query string) string {
	sum := sha256.Sum256([]byte(query))
	return hex.EncodeToString(sum[:])
}

func TestADocumentIsRegisteredOnceAndThenNamed(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	const query = "{ __typename }"
	extensions := `{"persistedQuery":{"version":1,"sha256Hash":"` + hashed(query) + `"}}`
	byHash := got("extensions=" + url.QueryEscape(extensions))
	if w := e.do(byHash); !strings.Contains(w.Body.String(), "PersistedQueryNotFound") {
		t.Fatal(w.Body)
	}
	invalid := "{ nothing }"
	e.do(posted(`{"query":"` + invalid + `","extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hashed(invalid) + `"}}}`))
	if w := e.do(posted(`{"documentId":"sha256:` + hashed(invalid) + `"}`)); !strings.Contains(w.Body.String(), "PersistedQueryNotFound") {
		t.Errorf("an invalid document was registered: %s", w.Body)
	}
	e.do(posted(`{"query":"` + query + `","extensions":` + extensions + `}`))
	for _, r := range []httpRequest{byHash, posted(`{"extensions":` + extensions + `}`), posted(`{"documentId":"sha256:` + hashed(query) + `"}`), got("documentId=sha256:" + hashed(query))} {
		if w := e.do(r); w.Body.String() != `{"data":{"__typename":"Query"}}` {
			t.Errorf("%+v: %s", r, w.Body)
		}
	}
}

func TestOnlyTrustedDocumentsAreExecutedIfThatIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "persisted.json")
	data, _ := json.Marshal(map[string]string{"app-1": "query A { __typename }"})
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	e := newEdge(t, plain, server.Config{Documents: transport.NamedDocumentsConfig{Trusted: []string{path}, TrustedOnly: true}})
	if w := e.do(posted(`{"documentId":"app-1"}`)); w.Body.String() != `{"data":{"__typename":"Query"}}` {
		t.Error(w.Body)
	}
	if w := e.do(posted(`{"query":"{ __typename }"}`)); !strings.Contains(w.Body.String(), `"code":"FORBIDDEN"`) {
		t.Error(w.Body)
	}
}

func TestOnlyTrustedDocumentsAreAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "persisted.json")
	if err := os.WriteFile(path, []byte(`{"app-1": "{ __typename }"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	e := newEdge(t, plain, server.Config{Documents: transport.NamedDocumentsConfig{Trusted: []string{path}, TrustedOnly: true}})
	if w := e.do(posted(`{"documentId":"app-2"}`)); !strings.Contains(w.Body.String(), `"code":"FORBIDDEN"`) {
		t.Error(w.Body) // PERSISTED_QUERY_NOT_FOUND would ask for the text
	}
}

func TestTheSchemaCanBeHidden(t *testing.T) {
	e := newEdge(t, plain, server.Config{HideIntrospection: true})
	if w := e.do(posted(`{"query":"{ __schema { queryType { name } } }"}`)); strings.Contains(w.Body.String(), `"Query"`) || !strings.Contains(w.Body.String(), "hide-introspection") {
		t.Error(w.Body)
	}
}

func TestALongListOfErrorsIsCut(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	w := e.do(posted(`{"query":"{ __typename ` + strings.Repeat("@d ", 500) + `}"}`))
	var out struct{ Errors []struct{ Message string } }
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || len(out.Errors) > 60 || !strings.Contains(out.Errors[len(out.Errors)-1].Message, "errors more") {
		t.Errorf("%d errors, %v", len(out.Errors), err)
	}
}
