package console_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/console"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

func kinds() []*descriptor.Kind {
	verbs := []descriptor.Verb{descriptor.VerbGet, descriptor.VerbList, descriptor.VerbWatch}
	return []*descriptor.Kind{
		{Name: "Cloud", Singular: "cloud", Plural: "clouds", Scope: descriptor.Global, Verbs: verbs[:2]},
		{Name: "Network", Singular: "network", Plural: "networks", Scope: descriptor.Namespaced, Verbs: verbs},
		{Name: "BookShelf", Singular: "bookShelf", Plural: "bookShelves", Scope: descriptor.Namespaced, Verbs: verbs},
	}
}

// builtIn is a folder as fetch.sh leaves it.
func builtIn(t *testing.T) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	for _, name := range []string{"graphiql.min.js", "graphiql.min.css", "react.production.min.js", "react-dom.production.min.js"} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte("/* " + name + " */"))
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		out[name+".gz"] = &fstest.MapFile{Data: b.Bytes()}
	}
	return out
}

func open(t *testing.T, dist fstest.MapFS) http.Handler {
	t.Helper()
	c, err := console.New(console.Config{Version: "v9", Store: "memory", Schema: kindstest.API(t), Kinds: kinds(), Dist: dist})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func get(c http.Handler, path string, header ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080"+path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestConsole_WithoutGraphiQLThePlainPageStandsIn(t *testing.T) {
	c := open(t, fstest.MapFS{})
	front := text(t, get(c, "/"))
	if !strings.Contains(front, `<textarea id="query"`) || strings.Contains(front, "graphiql.min") {
		t.Errorf("not the plain page:\n%s", front)
	}
	if front != text(t, get(c, "/console/plain")) {
		t.Error("/console/plain is another page")
	}
}

func TestConsole_WithGraphiQLBothPagesAreServed(t *testing.T) {
	c := open(t, builtIn(t))
	if front := text(t, get(c, "/")); !strings.Contains(front, `<div id="graphiql">`) {
		t.Errorf("not GraphiQL's page:\n%s", front)
	}
	if plain := text(t, get(c, "/console/plain")); !strings.Contains(plain, `<textarea id="query"`) {
		t.Errorf("not the plain page:\n%s", plain)
	}
}

// loads are what a document makes a browser fetch.
var loads = regexp.MustCompile(`(?:src|href)="([^"]*)"`)

func TestConsole_PagesLoadOnlyWhatTheConsoleServes(t *testing.T) {
	c := open(t, builtIn(t))
	for _, page := range []string{"/", "/console/plain"} {
		document := text(t, get(c, page))
		assets := 0
		for _, m := range loads.FindAllStringSubmatch(document, -1) {
			switch path := m[1]; {
			case strings.HasPrefix(path, "data:"), strings.HasPrefix(path, "/healthz"), path == "/readyz", path == "/metrics":
			case !strings.HasPrefix(path, "/console/"):
				t.Errorf("%s asks for %s", page, path)
			default:
				assets++
				if r := get(c, path); r.StatusCode != http.StatusOK {
					t.Errorf("%s asks for %s: %d", page, path, r.StatusCode)
				}
			}
		}
		if assets < 4 {
			t.Errorf("%s asks for %d files of the console", page, assets)
		}
	}
}

// foreign is an address of another host, in a place where it is fetched.
var foreign = regexp.MustCompile(`(?i)(src=|href=|url\(|import\s*\(?|fetch\(|WebSocket\()["'` + "`" + `]?\s*(https?:)?//`)

func TestConsole_NothingThatIsServedNamesAnotherHost(t *testing.T) {
	c := open(t, builtIn(t))
	for _, page := range []string{"/", "/console/plain"} {
		document := text(t, get(c, page))
		for _, m := range append([][]string{{"", page}}, loads.FindAllStringSubmatch(document, -1)...) {
			if strings.HasPrefix(m[1], "data:") {
				continue
			}
			if found := foreign.FindString(text(t, get(c, m[1]))); found != "" {
				t.Errorf("%s has %q", m[1], found)
			}
		}
	}
}

func TestConsole_PagesAllowNoScriptThatIsWrittenIntoThem(t *testing.T) {
	c := open(t, builtIn(t))
	for _, page := range []string{"/", "/console/plain"} {
		r := get(c, page)
		want := "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-nzTgYzXYDNe6BAHiiI7NNlfK8n/auuOAhh2t92YvuXo='; img-src 'self' data:; font-src 'self' data:; " +
			"connect-src 'self' ws://127.0.0.1:8080 wss://127.0.0.1:8080; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
		if got := r.Header.Get("Content-Security-Policy"); got != want {
			t.Errorf("%s: %s", page, got)
		}
		if m := regexp.MustCompile(`<script[^>]*>[^<]`).FindAllString(text(t, r), -1); m != nil {
			t.Errorf("%s has scripts %q", page, m)
		}
	}
}

func TestConsole_PagesMayAskTheIssuersAndNobodyElse(t *testing.T) {
	issuers := []string{"https://login.example.com/realms/a", "http://localhost:5556", "https://a;script-src"}
	c, err := console.New(console.Config{Dist: fstest.MapFS{}, Issuers: issuers})
	if err != nil {
		t.Fatal(err)
	}
	got := get(c, "/").Header.Get("Content-Security-Policy")
	want := "; connect-src 'self' ws://127.0.0.1:8080 wss://127.0.0.1:8080 https://login.example.com http://localhost:5556; "
	if !strings.Contains(got, want) || strings.Count(got, "example.com") != 1 || strings.Contains(got, "a;script-src") {
		t.Error(got)
	}
}

func TestConsole_AHostThatIsNoNameStaysOutOfThePolicy(t *testing.T) {
	c := open(t, fstest.MapFS{})
	for _, host := range []string{"[::1]:8080", "a;script-src *", "a b"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, "connect-src 'self';") || strings.Contains(got, "*") {
			t.Errorf("%s: %s", host, got)
		}
	}
}

func TestConsole_AssetsAreKeptForEverAndCompressed(t *testing.T) {
	c := open(t, builtIn(t))
	path := regexp.MustCompile(`/console/assets/graphiql\.min\.[0-9a-f]{12}\.js`).FindString(text(t, get(c, "/")))
	for accept, want := range map[string]string{"gzip, deflate, br": "gzip", "br;q=1, GZIP;q=0.5": "gzip", "": "", "identity": "", "gzip;q=0": "", "gzip; q=0.0": ""} {
		r := get(c, path, "Accept-Encoding", accept)
		if got := r.Header.Get("Content-Encoding"); got != want {
			t.Errorf("Accept-Encoding %q: %q", accept, got)
		}
		if want == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			r.Body = z
		}
		if got := text(t, r); got != "/* graphiql.min.js */" {
			t.Errorf("Accept-Encoding %q: %q", accept, got)
		}
		h := r.Header
		if h.Get("Cache-Control") != "public, max-age=31536000, immutable" || h.Get("Vary") != "Accept-Encoding" || h.Get("Content-Type") != "text/javascript; charset=utf-8" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("headers %v", h)
		}
	}
}

func TestConsole_APageThatTheBrowserHasIsNotSentAgain(t *testing.T) {
	c := open(t, fstest.MapFS{})
	first := get(c, "/")
	again := get(c, "/", "If-None-Match", first.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified || text(t, again) != "" || again.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%d %v", again.StatusCode, again.Header)
	}
	if other := get(c, "/", "If-None-Match", `"other"`); other.StatusCode != http.StatusOK {
		t.Errorf("%d", other.StatusCode)
	}
}

func TestConsole_UnknownAssetsAreNotFound(t *testing.T) {
	c := open(t, builtIn(t))
	for _, path := range []string{"/console/assets/graphiql.min.js", "/console/assets/", "/console/dist.sum", "/console/page/plain.html", "/other"} {
		if r := get(c, path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
}

func TestConsole_LicencesOfWhatIsBuiltInAreServed(t *testing.T) {
	served := text(t, get(open(t, fstest.MapFS{}), "/console/LICENSES.txt"))
	for _, part := range []string{"graphiql", "codemirror", "react-dom", "MIT License", "Apache License", "SIL OPEN FONT LICENSE"} {
		if !strings.Contains(served, part) {
			t.Errorf("nothing of %s", part)
		}
	}
}

func TestConsole_ABrokenBuildOfGraphiQLIsAnError(t *testing.T) {
	dist := builtIn(t)
	dist["graphiql.min.js.gz"] = &fstest.MapFile{Data: []byte("no gzip")}
	if _, err := console.New(console.Config{Dist: dist}); err == nil || !strings.Contains(err.Error(), "graphiql.min.js.gz") {
		t.Errorf("%v", err)
	}
}
