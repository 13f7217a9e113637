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

// pageTemplate is a document that is the same for everybody.
type pageTemplate struct {
	body    []byte
	etag    string
	issuers []string
}

// newPage executes a template of page/. Templates name assets by their source:
// {{asset "api.js"}}.
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

// plainHost matches the hosts that a Content-Security-Policy can name.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$`)

// scrollLock is the hash of the style by which GraphiQL's dialogs and menus keep
// the page from scrolling while they are open.
const scrollLock = "'sha256-nzTgYzXYDNe6BAHiiI7NNlfK8n/auuOAhh2t92YvuXo='"

// policy lets a page load from this gateway alone, and run no script that is
// written into it. Not all browsers take 'self' to cover WebSocket, so the
// host is named as well. Scripts may also ask the issuers, to log in.
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
