package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// The paths of exports and backups; see [Config.Export] and [Config.Backup].
const (
	exportPath = "/export"
	backupPath = "/backup"
)

// exporting returns a handler that passes requests to another one if their callers have the verb EXPORT. Such a request
// may take minutes; it ends when the server begins to drain.
func (s *Server) exporting(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.export(w, r, to) })
}

func (s *Server) export(w http.ResponseWriter, r *http.Request, to http.Handler) {
	if r.Method != http.MethodGet { // the pattern of GET has HEAD, too
		refuseMethod("GET", "use GET")(w, r)
		return
	}
	rights, err := s.generation.Load().catalogue.API.Service.Reader.Rights(r.Context())
	if err == nil && !rights.May(access.VerbExport) {
		err = &failure.Error{Code: failure.CodeForbidden, Verb: string(access.VerbExport), Message: fmt.Sprintf("you do not have the verb %s; an administrator can give it by an AccessBinding", access.VerbExport)}
	}
	if err != nil {
		s.refuseCaller(w, r, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
	to.ServeHTTP(w, r.WithContext(ctx))
}
