package server

import (
	"context"
	"fmt"
	"mime"
	"net/http"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// reloadPath is the path of requests to replace the catalogue; see [Config.Reload].
const reloadPath = "/catalogue"

// reload passes a request to [Config.Reload] if its caller has the verb CATALOGUE. Such a request may take minutes; it
// ends when the server begins to drain.
func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		refuse(
			w,
			r,
			http.StatusUnsupportedMediaType,
			failure.CodeBadUserInput,
			"the Content-Type must be application/json",
		)
		return
	}
	if err := s.mayReload(r.Context()); err != nil {
		s.refuseCaller(w, r, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()
	s.cfg.Reload.ServeHTTP(w, r.WithContext(ctx))
}

// mayReload returns an error if the caller does not have the verb CATALOGUE.
func (s *Server) mayReload(ctx context.Context) error {
	if !s.cfg.Identities.Required() {
		return &failure.Error{Code: failure.CodeForbidden, Message: "this gateway does not know its callers, so its catalogue is changed over its admin socket only"}
	}
	rights, err := s.generation.Load().catalogue.API.Service.Reader.Rights(ctx)
	if err == nil && !rights.May(access.VerbCatalogue) {
		err = &failure.Error{Code: failure.CodeForbidden, Verb: string(access.VerbCatalogue), Message: fmt.Sprintf("you do not have the verb %s; an administrator can give it by an AccessBinding", access.VerbCatalogue)}
	}
	return err
}
