package transport

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service"
)

// HTTP serves operations by GET and POST, as the GraphQL over HTTP
// specification has it: a query or mutation is answered as JSON, a subscription
// as server-sent events.
type HTTP struct {
	// Executor runs the operations. Required.
	Executor *Executor
	// Body is the most bytes of a request. Required.
	Body int64
	// Time is how long a query or mutation may take, parsing included. Required.
	Time time.Duration
	// Events serves subscriptions. Required.
	Events *Events

	writers sync.Pool // of *gzip.Writer
}

// ServeHTTP answers one request.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	req, status, err := h.read(w, r)
	if err != nil {
		h.refuse(w, r, status, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.Time)
	defer cancel()
	op, errs := h.Executor.Prepare(ctx, req)
	if len(errs) > 0 {
		h.refuse(w, r, 0, errs...)
		return
	}
	switch {
	case op.Kind() == ast.Subscription:
		// Whoever did not ask for events by name would wait for an answer that never ends.
		if !names(r.Header.Values("Accept"), typeEvents) {
			h.refuse(w, r, http.StatusNotAcceptable, badRequest("a subscription is answered as text/event-stream, which Accept must name, or over WebSocket (graphql-transport-ws)"))
			return
		}
		h.Events.Serve(w, r, op)
	case op.Kind() == ast.Mutation && r.Method == http.MethodGet:
		w.Header().Set("Allow", "POST")
		h.refuse(w, r, http.StatusMethodNotAllowed, badRequest("a mutation is sent by POST"))
	default:
		h.answer(w, r, op)
	}
}

// read returns the request, or the status and the reason of its refusal.
func (h *HTTP) read(w http.ResponseWriter, r *http.Request) (*Request, int, *gqlerror.Error) {
	switch r.Method {
	case http.MethodGet:
		req, err := parseQuery(r.URL.RawQuery)
		return req, http.StatusBadRequest, err
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, POST")
		return nil, http.StatusMethodNotAllowed, badRequest("use POST, or GET for queries and subscriptions")
	}
	// A page of another site can send other types without asking first.
	if media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != typeJSON || !isUTF8(params["charset"]) {
		w.Header().Set("Accept-Post", typeJSON)
		return nil, http.StatusUnsupportedMediaType, badRequest("the Content-Type of a POST is application/json, in UTF-8")
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.Body))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, &gqlerror.Error{
			Message:    fmt.Sprintf("the request has more than the %d bytes that are accepted (configuration key limit-body)", h.Body),
			Extensions: map[string]any{"code": string(service.CodeLimitExceeded), "limit": h.Body, "key": "limit-body"},
		}
	case err != nil:
		return nil, http.StatusBadRequest, badRequest("the body could not be read")
	}
	req, refused := parseBody(data)
	return req, http.StatusBadRequest, refused
}

func isUTF8(charset string) bool {
	return charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// answer runs a query or a mutation.
func (h *HTTP) answer(w http.ResponseWriter, r *http.Request, op *Operation) {
	media := negotiate(r.Header.Values("Accept"), typeJSON, typeResponse)
	if media == "" && negotiate(r.Header.Values("Accept"), typeEvents) != "" {
		h.Events.Serve(w, r, op)
		return
	}
	if media == "" {
		h.refuse(w, r, http.StatusNotAcceptable, badRequest("answers are application/graphql-response+json or application/json; Accept names neither"))
		return
	}
	h.write(w, r, media, http.StatusOK, op.Do(r.Context()))
}

// refuse answers what is not executed. Without a status it is that of a document
// that does not parse or is not valid, which older clients expect with 200.
func (h *HTTP) refuse(w http.ResponseWriter, r *http.Request, status int, errs ...*gqlerror.Error) {
	media := negotiate(r.Header.Values("Accept"), typeJSON, typeResponse)
	switch {
	case media == "" && status == 0 && negotiate(r.Header.Values("Accept"), typeEvents) != "":
		h.Events.Refuse(w, r, errs...) // an EventSource shows its page no other answer
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
	h.write(w, r, media, status, h.Executor.Refuse(r.Context(), errs...))
}

// compressFrom is the size from which an answer is compressed, in bytes: below
// it fits one packet as it is.
const compressFrom = 1400

// write sends an answer as it is. A client that has gone hears nothing.
func write(w http.ResponseWriter, media string, status int, body []byte) {
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// write sends an answer, compressed if that is worth it and the client accepts it.
func (h *HTTP) write(w http.ResponseWriter, r *http.Request, media string, status int, body []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) < compressFrom || negotiate(r.Header.Values("Accept-Encoding"), "identity", "gzip") != "gzip" {
		write(w, media, status, body)
		return
	}
	w.Header().Set("Content-Type", media+"; charset=utf-8")
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
