package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// pageTemplate is an HTML page that is the same for all users.
type pageTemplate struct {
	body    []byte
	etag    string
	issuers []string
}

// newPage executes a template of page/. In a template, an asset is named by its source: {{asset "api.js"}}.
func newPage(name string, cfg Config, files map[string]asset) (*pageTemplate, error) {
	t, err := template.New(name).Funcs(template.FuncMap{"asset": func(source string) (string, error) {
		a, ok := files[source]
		if !ok {
			return "", fmt.Errorf("there is no asset %s", source)
		}
		return a.path, nil
	}}).ParseFS(pages, "page/"+name, "page/session.html")
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if err := t.Execute(&body, map[string]any{"Endpoint": cfg.Endpoint}); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body.Bytes())
	return &pageTemplate{
		body:    body.Bytes(),
		etag:    strconv.Quote(hex.EncodeToString(sum[:12])),
		issuers: cfg.Issuers,
	}, nil
}

// plainHost matches the host names that may be put into a Content-Security-Policy.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$`)

// scrollLock is the hash of an inline style. With this style GraphiQL's dialogs and menus prevent the page from
// scrolling.
const scrollLock = "'sha256-nzTgYzXYDNe6BAHiiI7NNlfK8n/auuOAhh2t92YvuXo='"

// policy returns a Content-Security-Policy by which a page loads only from this gateway and executes no inline scripts.
// It also names the host, because some browsers do not apply 'self' to WebSockets. Scripts may also call the issuers,
// for the login.
func policy(host string, issuers []string) string {
	connect := "'self'"
	if plainHost.MatchString(host) {
		connect += " ws://" + host + " wss://" + host
	}
	for _, issuer := range issuers {
		if u, err := url.Parse(issuer); err == nil && plainHost.MatchString(u.Host) {
			connect += " " + u.Scheme + "://" + u.Host
		}
	}
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self' " + scrollLock,
		"img-src 'self' data:",
		"font-src 'self' data:",
		"connect-src " + connect,
		"frame-ancestors 'none'",
		"base-uri 'none'",
		"form-action 'none'",
	}, "; ")
}

func (p *pageTemplate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy(r.Host, p.issuers))
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", p.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), p.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(p.body)
}
