package remote

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/internal/span"
)

// The headers of calls.
const (
	userHeader    = "Sluice-User"
	groupHeader   = "Sluice-Group"
	requestHeader = "Sluice-Request-Id"
	traceHeader   = "Traceparent"
)

// setHeaders sets the headers for the caller, the id of the request, and the trace. traced is the span of the call.
func setHeaders(ctx context.Context, to http.Header, traced span.Span) {
	caller := access.CallerFrom(ctx)
	to.Set(userHeader, escape(access.ActorFrom(ctx).Name))
	if caller.Identity != nil {
		for _, group := range caller.Identity.Groups {
			to.Add(groupHeader, escape(group))
		}
	}
	if caller.Request != "" {
		to.Set(requestHeader, escape(caller.Request))
	}
	trace := traced.Traceparent()
	if trace == "" && caller.Decided {
		trace = caller.Trace
	}
	if trace != "" {
		to.Set(traceHeader, trace)
	}
}

// withCaller returns a context with the caller in the headers. If the gateway calls on its own behalf, it returns ctx.
func withCaller(ctx context.Context, from http.Header) context.Context {
	user := unescape(from.Get(userHeader))
	if user == access.Gateway {
		return ctx
	}
	caller := access.Caller{
		Request: unescape(from.Get(requestHeader)),
		Trace:   access.ParseTrace(from.Get(traceHeader)),
	}
	caller.Decided = caller.Trace != ""
	if user != "" && user != access.Anonymous {
		caller.Identity = &access.Identity{Name: user}
		for _, line := range from.Values(groupHeader) {
			for group := range strings.SplitSeq(line, ",") { // proxies may join headers of one name
				caller.Identity.Groups = append(caller.Identity.Groups, unescape(strings.TrimSpace(group)))
			}
		}
	}
	return access.WithCaller(ctx, caller)
}

// escape percent-encodes all characters except visible ASCII characters. Commas, which separate the values of a header,
// and percent signs are encoded too.
func escape(text string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(text) {
		b := text[i]
		if b > ' ' && b < 0x7f && b != ',' && b != '%' {
			out.WriteByte(b)
			continue
		}
		out.WriteByte('%')
		out.WriteByte(digits[b>>4])
		out.WriteByte(digits[b&15])
	}
	return out.String()
}

// unescape decodes the result of escape. It returns invalid texts unchanged.
func unescape(text string) string {
	if out, err := url.PathUnescape(text); err == nil {
		return out
	}
	return text
}
