package server

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// Every page on the web can make its visitor's browser send a GET to the
// gateway: an <img>, a <script>, a form, a fetch without CORS. The page cannot
// read the answer, but the query runs, and such a request has no Origin. So the
// API serves a request only if something about it proves that no page of another
// origin has sent it.

// isAPIType reports whether a media type is one of the API: an element of a page
// asks for images, scripts or pages, and never names these.
func isAPIType(media string) bool {
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "application/json", "application/graphql-response+json", "text/event-stream":
		return true
	}
	return false
}

// comesByItself reports whether browsers or proxies add a header to any request, so
// that it does not tell who sent the request. A page may set some of them without a
// preflight (https://fetch.spec.whatwg.org, "CORS-safelisted request-header").
func comesByItself(name string) bool {
	switch name {
	case "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Alt-Used", "B3", "Baggage", "Cache-Control", "Connection", "Content-Language",
		"Content-Length", "Cookie", "Date", "Device-Memory", "Dnt", "Downlink", "Dpr", "Early-Data", "Ect", "Expect", "Forwarded",
		"Host", "Icy-Metadata", "If-Modified-Since", "If-None-Match", "If-Range", "Keep-Alive", "Last-Event-Id", "Origin", "Pragma", "Priority",
		"Purpose", "Range", "Referer", "Rtt", "Save-Data", "Service-Worker", "Te", "Traceparent", "Tracestate", "Trailer", "Transfer-Encoding", "True-Client-Ip",
		"Upgrade-Insecure-Requests", "User-Agent", "Via", "Viewport-Width", "Width", "X-Client-Data", "X-Client-Ip",
		"X-Cluster-Client-Ip", "X-Moz", "X-Purpose",
		"X-Real-Ip", "X-Request-Id", "X-Request-Start", "X-Requested-With", "X-Correlation-Id", "X-Scheme", "X-Uidh", "X-Varnish":
		return true
	}
	for _, prefix := range []string{
		"Sec-", "Proxy-", "Access-Control-Request-", "Attribution-Reporting-", "Ping-", "X-Forwarded-", "X-Original-", "X-Amz", "X-Arr-", "X-Azure-",
		"X-B3-", "X-Envoy-", "X-Cloud-", "X-Vercel-", "Cf-", "Cdn-", "Fastly-", "Fly-",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// sameOriginOnly refuses requests that a page of another origin may have sent.
func (s *Server) sameOriginOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reason := s.foreign(r); reason != "" {
			s.forbid(w, r, reason)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// foreign returns why a request may come from a page of another origin, "" if it cannot. originAllowed has
// already checked the Origin, if there is one.
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
	return "an element of a page may have sent this request; name application/json, application/graphql-response+json or text/event-stream in Accept"
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

// acceptsAnything reports whether there is no Accept header, or only */*.
func acceptsAnything(accept []string) bool {
	name, _, _ := strings.Cut(strings.Join(accept, ","), ";")
	name = strings.TrimSpace(name)
	return name == "" || name == "*/*" && !strings.Contains(strings.Join(accept, ","), ",")
}

// isDeliberate reports whether a request has a header that a page of another origin
// can send only after a preflight.
func isDeliberate(h http.Header) bool {
	for name := range h {
		if name == "Content-Type" && isForm(h.Get(name)) || comesByItself(name) {
			continue
		}
		return true
	}
	return false
}

// isForm reports whether a browser sends contentType without a preflight.
func isForm(contentType string) bool {
	switch media, _, _ := mime.ParseMediaType(contentType); media {
	case "", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded":
		return true
	}
	return false
}
