package server

import (
	"bytes"
	_ "embed" // page.html
	"html/template"
	"net/http"
)

//go:embed page.html
var pageHTML string

// page answers / with where the API is.
func (s *Server) page() (http.HandlerFunc, error) {
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return nil, err
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var out bytes.Buffer
		err := t.Execute(&out, map[string]any{"Version": s.cfg.Version, "Store": s.cfg.Store, "Kinds": s.cfg.Service.Kinds(), "Host": r.Host})
		if err != nil {
			panic(err) // the template is ours and its data is plain
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write(out.Bytes())
	}, nil
}
