package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/transport"
)

// identified authenticates the caller of a request, and refuses a request without a credential if one is required. A
// WebSocket upgrade is not refused, because its credential may follow in connection_init.
func (s *Server) identified(next http.Handler, refuse func(http.ResponseWriter, *http.Request, error)) http.Handler {
	if !s.cfg.Identities.Required() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := s.cfg.Identities.Request(r)
		upgrades := factsOf(r.Context()).api != "" && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
		if err == nil && id == nil && !upgrades {
			err = failure.Unauthenticated(access.ErrNoCredential)
		}
		if err != nil {
			refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(withIdentity(r.Context(), id)))
	})
}

// initSocket returns the context for the operations of a WebSocket connection. The caller is authenticated by the
// member authorization of connection_init, whose name may have letters of any case. If there is none, the caller of the
// upgrade request is used.
func (s *Server) initSocket(ctx context.Context, payload json.RawMessage) (_ context.Context, err error) {
	if !s.cfg.Identities.Required() {
		return ctx, nil
	}
	defer func() {
		var known *failure.Error
		if errors.As(err, &known) {
			s.cfg.Refused(ctx, known)
		}
	}()
	given, err := authorization(payload)
	switch {
	case err != nil:
		return ctx, err
	case given == "" && access.CallerFrom(ctx).Identity == nil:
		return ctx, failure.Unauthenticated(access.ErrNoCredential)
	case given == "":
		return ctx, nil
	}
	id, err := s.cfg.Identities.Authorization(ctx, given)
	if err != nil {
		return ctx, err
	}
	return withIdentity(ctx, id), nil
}

// withIdentity returns a context in which the caller has an identity; nil for an anonymous caller.
func withIdentity(ctx context.Context, id *access.Identity) context.Context {
	caller := access.CallerFrom(ctx)
	caller.Identity = id
	return access.WithCaller(ctx, caller)
}

// authorization returns the credential in the payload of connection_init; "" if it has none.
func authorization(payload json.RawMessage) (string, error) {
	if len(payload) == 0 {
		return "", nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		return "", nil // transport has accepted it as an object or null
	}
	found := ""
	for name, value := range members {
		if !strings.EqualFold(name, "authorization") || string(value) == "null" {
			continue
		}
		if found != "" || json.Unmarshal(value, &found) != nil || found == "" {
			return "", &failure.Error{Code: failure.CodeUnauthenticated, Message: "authorization: one text is accepted, Bearer and a token"}
		}
	}
	return found, nil
}

// quotaName returns the name under which the use of a caller is counted: its name, or its address if it is anonymous.
// It returns "" for an anonymous caller whose address is on this machine or not known. The use of such a caller is not
// limited.
func (s *Server) quotaName(ctx context.Context) string {
	caller := access.CallerFrom(ctx)
	if caller.Identity != nil {
		return caller.Identity.Name
	}
	address := caller.Address
	if !address.IsValid() || address.IsLoopback() {
		return ""
	}
	if address.Is6() { // one client has a whole network of these
		prefix, _ := address.Prefix(64)
		return prefix.String()
	}
	return address.String()
}

// admit implements [transport.Config.Admit].
func (s *Server) admit(ctx context.Context, use transport.Use) (done func(), err error) {
	name := s.quotaName(ctx)
	if name == "" {
		return nil, nil
	}
	return s.callers.Begin(name, use)
}

// spend charges steps of work to the caller in ctx: the work of an operation, or of parsing a document.
func (s *Server) spend(ctx context.Context, steps int64) {
	if name := s.quotaName(ctx); name != "" {
		s.callers.Spend(name, steps)
	}
}

// refuseCaller answers a request outside the API whose caller is not authenticated or lacks a right.
func (s *Server) refuseCaller(w http.ResponseWriter, r *http.Request, err error) {
	var known *failure.Error
	if !errors.As(err, &known) {
		known = &failure.Error{Code: failure.CodeInternal, Message: "internal error"}
	}
	s.cfg.Refused(r.Context(), known)
	s.logRefused(r, known.Code)
	status := transport.Status(w, err)
	refuse(w, r, status, known.Code, known.Message)
}

// mayKnow reports whether the caller may see the details of /readyz?verbose.
func (s *Server) mayKnow(r *http.Request) bool {
	if !s.cfg.Identities.Required() {
		return true
	}
	id, err := s.cfg.Identities.Request(r)
	return id != nil && err == nil
}

// login answers with the issuers at which users can log in, and the client ids for them.
func (s *Server) login(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"credential": s.cfg.Identities.Required(),
		"issuers":    s.cfg.Identities.Issuers.Logins(),
	})
}
