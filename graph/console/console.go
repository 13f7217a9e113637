// Package console serves the page at /. It is GraphiQL with examples for the catalogue, or a plain page if GraphiQL was
// not built in. The page loads nothing from other hosts.
//
// GraphiQL comes from pinned npm packages. fetch.sh verifies them, compresses them, and puts them into the folder dist,
// which is embedded into the binary. In a fresh clone dist is empty, so that a build does not need npm.
//
// Both pages use page/session.js for the login, and page/api.js, a small client of the API. A better console could be
// added as a third page: its built files would be put into dist, and New would prefer it.
//
// A page is the same for all users and contains nothing about the gateway. It loads that from /console/data with the
// user's credential.
package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
)

// Config configures the console.
type Config struct {
	// Version and Store are shown on the page.
	Version, Store string
	// Schema is the schema of the API. Required if there are kinds.
	Schema *ast.Schema
	// Kinds are the kinds of the API, for the examples.
	Kinds []*descriptor.Kind
	// Endpoint is the path of the API. Default: /graphql.
	Endpoint string
	// Issuers are the URLs of the OpenID Connect issuers at which users log in.
	Issuers []string
	// Dist is the folder with GraphiQL's files. Default: the files that were built in.
	Dist fs.FS
}

// DataPath is the path of the page's data. The server must require a credential for it.
const DataPath = "/console/data"

// New returns the handler of GET and HEAD requests for / and all paths under /console/. It prepares all files in
// advance.
func New(cfg Config) (http.Handler, error) {
	if cfg.Endpoint == "" {
		cfg.Endpoint = "/graphql"
	}
	if cfg.Dist == nil {
		built, err := fs.Sub(dist, "dist")
		if err != nil {
			return nil, err
		}
		cfg.Dist = built
	}
	own, err := ownAssets()
	if err != nil {
		return nil, fmt.Errorf("assets of the page: %w", err)
	}
	theirs, err := builtAssets(cfg.Dist)
	whole := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("assets of GraphiQL: %w", err)
	}
	files := map[string]asset{}
	for _, a := range append(own, theirs...) {
		files[a.source] = a
	}
	mux := http.NewServeMux()
	for _, a := range files {
		mux.Handle("GET "+a.path, a)
	}
	plain, err := newPage("plain.html", cfg, files)
	if err != nil {
		return nil, err
	}
	front := plain
	if whole {
		if front, err = newPage("graphiql.html", cfg, files); err != nil {
			return nil, err
		}
	}
	mux.Handle("GET /{$}", front)
	mux.Handle("GET /console/plain", plain)
	mux.Handle(
		"GET "+DataPath,
		data{Endpoint: cfg.Endpoint, Version: cfg.Version, Store: cfg.Store, Examples: Examples(cfg.Schema, cfg.Kinds)},
	)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		mux.ServeHTTP(w, r)
	}), nil
}

// data is the JSON at [DataPath]: what the console shows about the gateway to the user who has logged in.
type data struct {
	Endpoint string     `json:"endpoint"`
	Version  string     `json:"version"`
	Store    string     `json:"store"`
	Examples []Example  `json:"examples"`
	Viewer   viewerData `json:"viewer"`
}

// viewerData is the caller, in the form of the API.
type viewerData struct {
	Name      string    `json:"name"`
	Groups    []string  `json:"groups"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

func (d data) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := access.CallerFrom(r.Context()).Identity
	d.Viewer = viewerData{Name: id.String(), Groups: []string{}}
	if id != nil {
		d.Viewer.Groups, d.Viewer.ExpiresAt = id.Groups, id.ExpiresAt
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(d)
}
