package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxAttempts is how often a request is sent at most. Requests are sent again only if the service has not executed
// them.
const maxAttempts = 3

// errNotExecuted means that the service has refused a request without executing it, each time.
var errNotExecuted = errors.New("the service or a proxy has refused it each time")

// The transport of net/http sends a request again if an HTTP/2 server refuses it by GOAWAY or by REFUSED_STREAM, which
// mean that the request was not executed (RFC 9113, 8.7). It also does so after a PROTOCOL_ERROR, although the request
// may have been executed. It does not count the attempts: a server that refuses each connection gets thousands of them
// until the deadline.
var (
	_ http.RoundTripper = repeating{}
	_ http.RoundTripper = limited{}
)

// repeating sends requests over HTTP/2 only. It sends a request again if the service has not executed it.
type repeating struct{ transport http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (r repeating) RoundTrip(req *http.Request) (*http.Response, error) {
	body := req.GetBody
	one := req.WithContext(req.Context()) // a copy
	one.GetBody = nil                     // so that the transport does not send the request again
	for attempt := 1; ; attempt++ {
		res, err := r.transport.RoundTrip(one)
		switch {
		case err == nil, body == nil, !isNotExecuted(err):
			return res, err
		case attempt == maxAttempts:
			return nil, fmt.Errorf("%w: %w", errNotExecuted, err)
		}
		if one.Body, err = body(); err != nil {
			return nil, err
		}
	}
}

// isNotExecuted reports whether an error of the transport means that the service has not executed the request. The
// transport has no types for such errors. If their texts change, requests are not sent again.
func isNotExecuted(err error) bool {
	cause, ok := strings.CutPrefix(err.Error(), "http2: Transport: cannot retry err [")
	return ok && (strings.HasPrefix(cause, "http2: Transport received Server's graceful shutdown GOAWAY]") ||
		strings.HasPrefix(cause, "stream error: ") && strings.Contains(cause, "; REFUSED_STREAM;"))
}

// limited sends requests over any version of HTTP. It limits how often the transport sends a request again.
type limited struct{ transport http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (l limited) RoundTrip(req *http.Request) (*http.Response, error) {
	body := req.GetBody
	if body == nil {
		return l.transport.RoundTrip(req)
	}
	one := req.WithContext(req.Context()) // a copy
	attempts := 1
	one.GetBody = func() (io.ReadCloser, error) {
		attempts++
		if attempts > maxAttempts {
			return nil, errors.New("the service or a proxy has ended the connection several times")
		}
		return body()
	}
	return l.transport.RoundTrip(one)
}
