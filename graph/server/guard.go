package server

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// Any web page can make the browsers of its visitors send a GET to the gateway: with an <img>, a <script>, a form, or a
// fetch without CORS. The page cannot read the answer, but the query is executed, and such a request has no Origin.
// Therefore the API accepts a request only if it has a property that such a request cannot have.

// isAPIType reports whether a media type belongs to the API. Elements of a page, which accept images, scripts or pages,
// do not request these types.
func isAPIType(media string) bool {
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "application/json", "application/graphql-response+json", "text/event-stream":
		return true
	}
	return false
}

// sameOriginOnly returns a handler that refuses requests that a page of another origin may have caused.
func (s *Server) sameOriginOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason := s.foreign(r); reason != "" {
			s.forbid(w, r, reason)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign returns the reason why a request may come from a page of another origin; "" if it cannot. If there is an
// Origin, originAllowed has checked it.
func (s *Server) foreign(r *http.Request) string {
	origin := r.Header.Get("Origin")
	switch site := r.Header.Values("Sec-Fetch-Site"); {
	case len(site) == 1 && (site[0] == "same-origin" || site[0] == "none"):
		return ""
	case len(site) > 0 && origin != "" && slices.Contains(s.cfg.AllowedOrigins, strings.ToLower(origin)):
		return ""
	case len(site) > 0:
		return "a page of another origin has sent this request (Sec-Fetch-Site); add its Origin to allowed-origins, and let it use fetch with CORS"
	case origin != "", namesAPI(r.Header.Values("Accept")), isDeliberate(r.Header):
		return ""
	case acceptsAnything(r.Header.Values("Accept")) && !strings.HasPrefix(r.UserAgent(), "Mozilla"):
		return ""
	}
	return "an element of a page may have sent this request; name application/json, application/graphql-response+json or text/event-stream in Accept, or send a header apollo-require-preflight: true"
}

// namesAPI reports whether an Accept header names a media type of the API.
func namesAPI(accept []string) bool {
	for one := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, _, _ := strings.Cut(one, ";")
		if isAPIType(name) {
			return true
		}
	}
	return false
}

// acceptsAnything reports whether an Accept header is missing or is only */*.
func acceptsAnything(accept []string) bool {
	name, _, _ := strings.Cut(strings.Join(accept, ","), ";")
	name = strings.TrimSpace(name)
	return name == "" || name == "*/*" && !strings.Contains(strings.Join(accept, ","), ",")
}

// isDeliberate reports whether a request has a header that a page of another origin could send only after a preflight,
// and that browsers and proxies do not add by themselves, as they may add Authorization or tracing headers. A web view
// inside an app adds X-Requested-With with the name of the app, which contains dots; that does not count.
func isDeliberate(h http.Header) bool {
	if h.Get("Apollo-Require-Preflight") != "" || h.Get("X-Graphql-Csrf") != "" {
		return true
	}
	by := h.Get("X-Requested-With")
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return by != "" && !strings.Contains(by, ".") || err == nil && media == "application/json"
}
