package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// exportPath answers with everything that is stored, see [Config.Export].
const exportPath = "/export"

// export hands a request to [Config.Export] if its caller has the verb EXPORT. The request ends when the server begins
// to drain: it may take minutes.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
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
	s.cfg.Export.ServeHTTP(w, r.WithContext(ctx))
}
