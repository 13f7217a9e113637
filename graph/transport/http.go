package transport

import (
	"compress/gzip"
	"context"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
)

// serveHTTP serves a GET or POST according to the GraphQL over HTTP specification. Queries and mutations are answered
// with JSON, subscriptions with server-sent events.
func (t *Transport) serveHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Vary"] = append(w.Header()["Vary"], "Accept", "Accept-Encoding")
	admitted, refused := t.cfg.admit(r.Context(), UseRequest)
	if refused != nil {
		t.refuse(w, r, Status(w, refused), refused)
		return
	}
	defer admitted()
	req, taken, status, err := t.readRequest(w, r)
	defer func() { t.cfg.Memory.Requests().Give(taken) }()
	if err != nil {
		t.refuse(w, r, status, err)
		return
	}
	inTime, cancel := context.WithTimeout(r.Context(), t.cfg.Time)
	defer cancel()
	op, errs := t.cfg.Executor(r.Context()).Prepare(inTime, req)
	switch {
	case len(errs) > 0:
		t.refuse(w, r, 0, errs...)
	case op.isSubscription() && !names(r.Header.Values("Accept"), typeEvents):
		// A client that does not accept events would wait for the end of the answer, which may never come.
		t.refuse(w, r, http.StatusNotAcceptable, badRequest("a subscription is answered as text/event-stream, which Accept must name, or over WebSocket (graphql-transport-ws)"))
	case op.isSubscription():
		admitted()
		ended, refused := t.cfg.admit(r.Context(), UseSubscription)
		if refused != nil {
			t.refuse(w, r, Status(w, refused), refused)
			return
		}
		defer ended()
		done, ok := keep(t.cfg.Memory, taken)
		taken = 0
		if !ok {
			retryLater(w)
			t.refuse(w, r, http.StatusServiceUnavailable, overBudget(t.cfg.Memory))
			return
		}
		defer done()
		t.stream(w, r, op)
	case op.kind() == ast.Mutation && r.Method == http.MethodGet:
		w.Header().Set("Allow", "POST")
		t.refuse(w, r, http.StatusMethodNotAllowed, badRequest("a mutation is sent by POST"))
	default:
		t.answer(inTime, w, r, op)
	}
}

// keep moves the memory of a subscription's request from the memory of requests to the memory of subscriptions. done
// releases it. If there is not enough memory for subscriptions, ok is false, and the memory of the request is released.
func keep(m *budget.Memory, taken int64) (done func(), ok bool) {
	m.Requests().Give(taken)
	if !m.Subscriptions().Take(taken) {
		return nil, false
	}
	return func() { m.Subscriptions().Give(taken) }, true
}

// connected returns a context for the subscriptions of one connection, whose events share an allowance.
func connected(ctx context.Context, events *budget.Allowance) context.Context {
	return budget.WithShared(ctx, budget.Shared{Events: events.Connection()})
}

// readRequest reads a request. taken is the memory that it holds. If the request is refused, status and refused are the
// HTTP status and the error.
func (t *Transport) readRequest(
	w http.ResponseWriter, r *http.Request,
) (req *Request, taken int64, status int, refused *gqlerror.Error) {
	switch r.Method {
	case http.MethodGet:
		req, err := parseQuery(r.URL.RawQuery)
		return req, 0, http.StatusBadRequest, err
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, POST")
		return nil, 0, http.StatusMethodNotAllowed, badRequest("use POST, or GET for queries and subscriptions")
	}
	// For any other content type, a page of another site could make a browser send the request without a preflight.
	if !isJSON(r.Header.Get("Content-Type")) {
		w.Header().Set("Accept-Post", typeJSON)
		return nil, 0, http.StatusUnsupportedMediaType, badRequest("the Content-Type of a POST is application/json, in UTF-8")
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return nil, 0, http.StatusUnsupportedMediaType, badRequest("a compressed body is not accepted; send it without Content-Encoding")
	}
	var data []byte
	err := errTooLarge
	if r.ContentLength <= t.cfg.Body {
		data, taken, err = t.readBody(w, r)
	}
	if err != nil {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		status, refused := t.unread(w, err)
		return nil, taken, status, refused
	}
	req, refused = parseBody(data)
	return req, taken, http.StatusBadRequest, refused
}

// isJSON reports whether a Content-Type means JSON in UTF-8.
func isJSON(contentType string) bool {
	if contentType == typeJSON { // most are
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	return err == nil && media == typeJSON &&
		slices.Contains([]string{"", "utf-8", "utf8"}, strings.ToLower(params["charset"]))
}

// answer executes a query or mutation within the deadline of inTime, and sends the answer. The deadline does not apply
// to sending.
func (t *Transport) answer(inTime context.Context, w http.ResponseWriter, r *http.Request, op *Operation) {
	media := negotiate(r.Header.Values("Accept"), typeJSON, typeResponse)
	if media == "" && negotiate(r.Header.Values("Accept"), typeEvents) != "" {
		t.stream(w, r, op)
		return
	}
	if media == "" {
		t.refuse(w, r, http.StatusNotAcceptable, badRequest("answers are application/graphql-response+json or application/json; Accept names neither"))
		return
	}
	to := t.paced(w)
	share := op.do(inTime, to.abort, func(a response) {
		to.end = time.Now().Add(maxWriteTime)
		switch {
		case a.busy:
			retryLater(w)
			t.send(to, r, media, http.StatusServiceUnavailable, &a)
		case a.storable && r.Method == http.MethodGet:
			t.sendTagged(to, r, media, &a)
		default:
			t.send(to, r, media, http.StatusOK, &a)
		}
	})
	share.Close()
}

const (
	// maxWrite is the number of bytes that a client must accept within the write timeout.
	maxWrite = 128 << 10
	// maxWriteTime is the maximum time for sending a whole answer.
	maxWriteTime = time.Minute
)

// pacedWriter writes to a client that must accept maxWrite bytes within each timeout.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	end     time.Time // the deadline of the whole answer; zero for none
	aborted atomic.Bool
}

func (t *Transport) paced(w http.ResponseWriter) *pacedWriter {
	return &pacedWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: t.cfg.WriteTimeout}
}

// abort closes the connection.
func (p *pacedWriter) abort() {
	p.aborted.Store(true)
	_ = p.control.SetWriteDeadline(time.Now()) // without deadlines it ends at the next Write
}

// Write implements [io.Writer].
func (p *pacedWriter) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, maxWrite) {
		deadline := time.Now().Add(p.timeout)
		if !p.end.IsZero() && p.end.Before(deadline) {
			deadline = p.end
		}
		_ = p.control.SetWriteDeadline(deadline) // not every writer has deadlines
		if p.aborted.Load() {
			return n, os.ErrDeadlineExceeded
		}
		written, err := p.ResponseWriter.Write(part)
		n += written
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// retryLater sets the header Retry-After.
func retryLater(w http.ResponseWriter) {
	w.Header().Set("Retry-After", strconv.Itoa(budget.RetryAfter))
}

// refuse answers a request that is not executed. Status 0 means that the document does not parse or is not valid; for
// that, older clients expect 200.
func (t *Transport) refuse(w http.ResponseWriter, r *http.Request, status int, errs ...*gqlerror.Error) {
	media := negotiate(r.Header.Values("Accept"), typeJSON, typeResponse)
	switch {
	case media == "" && status == 0 && negotiate(r.Header.Values("Accept"), typeEvents) != "":
		t.refuseStream(w, r, errs...)
		return
	case media == "":
		media = typeJSON
		status = max(status, http.StatusBadRequest)
	case status == 0 && media == typeResponse:
		status = http.StatusBadRequest
	case status == 0:
		status = http.StatusOK
	}
	t.send(w, r, media, status, &response{body: t.cfg.Executor(r.Context()).Refuse(r.Context(), errs...)})
}

// compressFrom is the minimum size of an answer that is compressed, in bytes. Smaller answers fit into one packet.
const compressFrom = 1400

// compressed reports whether to compress an answer.
func compressed(r *http.Request, body []byte) bool {
	return len(body) >= compressFrom && negotiate(r.Header.Values("Accept-Encoding"), "identity", "gzip") == "gzip"
}

func setType(w http.ResponseWriter, media string) {
	w.Header().Set("Content-Type", media+"; charset=utf-8")
}

// setUncached sets the content type of an answer and forbids caching, since the answer may contain secrets.
func setUncached(w http.ResponseWriter, media string) {
	w.Header().Set("Cache-Control", "no-store")
	setType(w, media)
}

// write sends an answer that must not be cached, without compression.
func write(w http.ResponseWriter, media string, status int, body []byte) {
	setUncached(w, media)
	writeBody(w, status, body)
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone
}

// send sends an answer that must not be cached.
func (t *Transport) send(w http.ResponseWriter, r *http.Request, media string, status int, a *response) {
	setUncached(w, media)
	t.sendBody(w, status, a, compressed(r, a.body))
}

// gzipTag is the suffix of the entity tags of compressed answers. A compressed answer needs a tag that differs from the
// tag of the uncompressed one.
const gzipTag = "-gzip"

// sendTagged sends the answer to a GET with an entity tag, so that the client can cache it. If the client already has
// the answer, it sends only status 304.
func (t *Transport) sendTagged(w http.ResponseWriter, r *http.Request, media string, a *response) {
	w.Header()["Vary"] = append(w.Header()["Vary"], "Authorization")
	w.Header().Set("Cache-Control", "private, no-cache")
	plain, zip := a.tag(), compressed(r, a.body)
	zipped := plain + gzipTag
	tag, other := plain, zipped
	if zip {
		tag = zipped
		other = plain
	}
	given := r.Header.Values("If-None-Match")
	switch {
	case hasTag(given, tag):
		notModified(w, tag)
		return
	case hasTag(given, other): // what the client has is the same answer
		notModified(w, other)
		return
	}
	w.Header().Set("ETag", `"`+tag+`"`)
	setType(w, media)
	t.sendBody(w, http.StatusOK, a, zip)
}

// notModified answers that the copy with an entity tag is current.
func notModified(w http.ResponseWriter, tag string) {
	w.Header().Set("ETag", `"`+tag+`"`)
	w.WriteHeader(http.StatusNotModified)
}

// hasTag reports whether an If-None-Match header has an entity tag. The comparison is weak (RFC 9110, section 13.1.2).
func hasTag(header []string, tag string) bool {
	for one := range strings.SplitSeq(strings.Join(header, ","), ",") {
		one = strings.TrimSpace(one)
		if one == "*" {
			return true
		}
		one = strings.TrimPrefix(one, "W/")
		one = strings.Trim(one, `"`)
		if one == tag {
			return true
		}
	}
	return false
}

// sendBody sends the body of an answer, compressed if zip is set.
func (t *Transport) sendBody(w http.ResponseWriter, status int, a *response, zip bool) {
	if !zip {
		writeBody(w, status, a.body)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	if a.kept != nil {
		if zipped := a.kept.Zipped(); zipped != nil {
			writeBody(w, status, zipped)
			return
		}
	}
	to, ok := t.zippers.Get().(*gzip.Writer)
	if !ok {
		to, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
	}
	defer t.zippers.Put(to)
	to.Reset(w)
	w.WriteHeader(status)
	_, _ = to.Write(a.body)
	_ = to.Close()
}
