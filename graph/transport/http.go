package transport

import (
	"cmp"
	"compress/gzip"
	"context"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
)

// HTTP serves operations by GET and POST, as the GraphQL over HTTP
// specification has it: a query or mutation is answered as JSON, a subscription
// as server-sent events.
type HTTP struct {
	// Executor runs the operations. Required.
	Executor API
	// Body is the most bytes of a request. Required.
	Body int64
	// Memory is what all that is in flight holds. Default: unbounded.
	Memory *budget.Memory
	// BodyTimeout is how long a client may take to send 64 KiB of a body. Default [DefaultMessageTimeout].
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take to read 128 KiB of an answer. Default [DefaultWriteTimeout].
	WriteTimeout time.Duration
	// Time is how long a query or mutation may take, parsing included. Required.
	Time time.Duration
	// Events serves subscriptions. Required.
	Events *Events

	writers sync.Pool // of *gzip.Writer

	mu     sync.Mutex
	bodies map[*incoming]struct{} // that are being read
	// stopping is when the last bodies must be there; zero while there is time.
	stopping time.Time
}

// ServeHTTP answers one request.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.Serve(r.Context(), w, r) }

// Serve is ServeHTTP in a context that derives from that of the request. A request that has
// it costs a copy.
func (h *HTTP) Serve(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	varies(w.Header())
	req, taken, status, err := h.read(w, r)
	defer func() { h.Memory.Requests().Give(taken) }() // until the answer is there
	if err != nil {
		h.refuse(ctx, w, r, status, err)
		return
	}
	inTime, cancel := context.WithTimeout(ctx, h.Time)
	defer cancel()
	op, errs := h.Executor.Prepare(inTime, req)
	if len(errs) > 0 {
		h.refuse(ctx, w, r, 0, errs...)
		return
	}
	switch {
	case op.Kind() == ast.Subscription:
		// Whoever did not ask for events by name would wait for an answer that never ends.
		if !names(r.Header.Values("Accept"), typeEvents) {
			h.refuse(ctx, w, r, http.StatusNotAcceptable, badRequest("a subscription is answered as text/event-stream, which Accept must name, or over WebSocket (graphql-transport-ws)"))
			return
		}
		done, ok := keep(h.Memory, taken)
		if taken = 0; !ok {
			h.busy(w)
			h.refuse(ctx, w, r, http.StatusServiceUnavailable, overBudget(h.Memory))
			return
		}
		defer done()
		h.Events.Serve(w, r.WithContext(ctx), op)
	case op.Kind() == ast.Mutation && r.Method == http.MethodGet:
		w.Header().Set("Allow", "POST")
		h.refuse(ctx, w, r, http.StatusMethodNotAllowed, badRequest("a mutation is sent by POST"))
	default:
		h.answer(ctx, inTime, w, r, op)
	}
}

// read returns the request and what it takes of the budget, or the status and the
// reason of its refusal.
func (h *HTTP) read(w http.ResponseWriter, r *http.Request) (req *Request, taken int64, status int, refused *gqlerror.Error) {
	switch r.Method {
	case http.MethodGet:
		req, err := parseQuery(r.URL.RawQuery)
		return req, 0, http.StatusBadRequest, err
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, POST")
		return nil, 0, http.StatusMethodNotAllowed, badRequest("use POST, or GET for queries and subscriptions")
	}
	if status, err := h.unacceptable(w, r); err != nil {
		return nil, 0, status, err
	}
	data, taken, err := h.body(w, r)
	if err != nil {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		status, refused := h.unread(w, err)
		return nil, taken, status, refused
	}
	req, refused = parseBody(data)
	return req, taken, http.StatusBadRequest, refused
}

// unacceptable refuses a body by its headers.
func (h *HTTP) unacceptable(w http.ResponseWriter, r *http.Request) (int, *gqlerror.Error) {
	// A page of another site can send other types without asking first.
	if !isJSON(r.Header.Get("Content-Type")) {
		w.Header().Set("Accept-Post", typeJSON)
		return http.StatusUnsupportedMediaType, badRequest("the Content-Type of a POST is application/json, in UTF-8")
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return http.StatusUnsupportedMediaType, badRequest("a compressed body is not accepted; send it without Content-Encoding")
	}
	if r.ContentLength > h.Body {
		w.Header().Set("Connection", "close")
		return h.unread(w, errTooMany)
	}
	return 0, nil
}

// isJSON says whether a Content-Type is JSON in UTF-8.
func isJSON(contentType string) bool {
	if contentType == typeJSON { // most are
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	return err == nil && media == typeJSON && isUTF8(params["charset"])
}

func isUTF8(charset string) bool {
	return charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// answer runs a query or a mutation, in time. The answer is sent as long as that takes.
func (h *HTTP) answer(ctx context.Context, inTime context.Context, w http.ResponseWriter, r *http.Request, op *Operation) {
	media := negotiate(r.Header.Values("Accept"), typeJSON, typeResponse)
	if media == "" && negotiate(r.Header.Values("Accept"), typeEvents) != "" {
		h.Events.Serve(w, r.WithContext(ctx), op)
		return
	}
	if media == "" {
		h.refuse(ctx, w, r, http.StatusNotAcceptable, badRequest("answers are application/graphql-response+json or application/json; Accept names neither"))
		return
	}
	to := &sending{ResponseWriter: w, timeout: cmp.Or(h.WriteTimeout, DefaultWriteTimeout)}
	op.Do(inTime, to.abort, func(answer []byte, busy bool) {
		status := http.StatusOK
		if busy {
			h.busy(w)
			status = http.StatusServiceUnavailable
		}
		h.write(to, r, media, status, answer)
	})
}

const (
	// writeStep is how much of an answer a client must read within the write time-out, in bytes.
	writeStep = 128 << 10
	// maxWriteTime is how long a client may read an answer, at whatever pace.
	maxWriteTime = time.Minute
)

// sending is an answer on its way to a client, which must read it at some pace.
type sending struct {
	http.ResponseWriter
	timeout time.Duration
	begun   time.Time
	aborted atomic.Bool
}

// abort ends the connection.
func (s *sending) abort() {
	s.aborted.Store(true)
	_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Now()) // else it ends later
}

// Write is part of [io.Writer]. What a client reads at once needs no deadline but that of the server.
func (s *sending) Write(b []byte) (n int, err error) {
	if len(b) <= writeStep && s.begun.IsZero() {
		return s.ResponseWriter.Write(b)
	}
	if s.begun.IsZero() {
		s.begun = time.Now()
	}
	control := http.NewResponseController(s.ResponseWriter)
	for step := range slices.Chunk(b, writeStep) {
		end := s.begun.Add(maxWriteTime)
		if soon := time.Now().Add(s.timeout); soon.Before(end) {
			end = soon
		}
		_ = control.SetWriteDeadline(end) // what has no deadlines ends with its connection
		if s.aborted.Load() {
			return n, os.ErrDeadlineExceeded
		}
		written, err := s.ResponseWriter.Write(step)
		if n += written; err != nil {
			return n, err
		}
	}
	return n, nil
}

// busy says when to try again.
func (h *HTTP) busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", strconv.Itoa(budget.RetryAfter))
}

// refuse answers what is not executed. Without a status it is that of a document
// that does not parse or is not valid, which older clients expect with 200.
func (h *HTTP) refuse(ctx context.Context, w http.ResponseWriter, r *http.Request, status int, errs ...*gqlerror.Error) {
	media := negotiate(r.Header.Values("Accept"), typeJSON, typeResponse)
	switch {
	case media == "" && status == 0 && negotiate(r.Header.Values("Accept"), typeEvents) != "":
		h.Events.Refuse(w, r.WithContext(ctx), errs...) // an EventSource shows its page no other answer
		return
	case media == "":
		media = typeJSON
		status = max(status, http.StatusBadRequest)
	}
	if status == 0 {
		status = http.StatusOK
		if media == typeResponse {
			status = http.StatusBadRequest
		}
	}
	h.write(w, r, media, status, h.Executor.Refuse(ctx, errs...))
}

// compressFrom is the size from which an answer is compressed, in bytes: below
// it fits one packet as it is.
const compressFrom = 1400

// write sends an answer as it is. A client that has gone hears nothing.
func write(w http.ResponseWriter, media string, status int, body []byte) {
	h := w.Header()
	setType(h, media)
	setLength(h, len(body))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// write sends an answer, compressed if that is worth it and the client accepts it.
func (h *HTTP) write(w http.ResponseWriter, r *http.Request, media string, status int, body []byte) {
	variesByEncoding(w.Header())
	if len(body) < compressFrom || negotiate(r.Header.Values("Accept-Encoding"), "identity", "gzip") != "gzip" {
		write(w, media, status, body)
		return
	}
	setType(w.Header(), media)
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	zip, ok := h.writers.Get().(*gzip.Writer)
	if !ok {
		zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one that exists
	}
	defer h.writers.Put(zip)
	zip.Reset(w)
	_, _ = zip.Write(body)
	_ = zip.Close()
}
