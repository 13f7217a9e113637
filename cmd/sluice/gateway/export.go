package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/audit"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/state"
	"github.com/sluicegw/sluice/cmd/sluice/version"
	"github.com/sluicegw/sluice/internal/span"
)

// ExportPath is the path of exports, on the network and on the admin socket.
const ExportPath = "/export"

// ExportSecrets is the query parameter for the form of secrets in an export.
const ExportSecrets = "secrets"

const (
	// maxExports is the maximum number of exports at a time.
	maxExports = 2
	// exportStall is the time within which the client of an export must accept more data.
	exportStall = time.Minute
)

// exports serves requests for exports.
type exports struct {
	on  shared
	log *zap.Logger
	// running has one element for each export in progress.
	running chan struct{}
}

func newExports(on shared, log *zap.Logger) *exports {
	return &exports{on: on, log: log, running: make(chan struct{}, maxExports)}
}

// handler returns a handler that sends exports. plain reports whether a request may ask for secrets without encryption.
func (e *exports) handler(plain bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secrets, err := exportSecrets(r, plain)
		if err != nil {
			refuseExport(w, r, http.StatusBadRequest, failure.CodeBadUserInput, err.Error())
			return
		}
		select {
		case e.running <- struct{}{}:
			defer func() { <-e.running }()
		default:
			refuseExport(w, r, http.StatusServiceUnavailable, failure.CodeUnavailable, fmt.Sprintf("%d exports are under way already; try again later", maxExports))
			return
		}
		if e.on.audit != nil {
			if err := e.on.audit.Export(r.Context(), audit.FormExport, string(secrets)); err != nil {
				refuseExport(w, r, http.StatusServiceUnavailable, failure.CodeUnavailable, "the audit log cannot be written, so nothing is exported")
				return
			}
		}
		e.serve(w, r, secrets)
	})
}

// exportSecrets returns the form of secrets that a request asks for.
func exportSecrets(r *http.Request, plain bool) (state.Secrecy, error) {
	switch secrecy := state.Secrecy(r.URL.Query().Get(ExportSecrets)); secrecy {
	case "", state.Sealed:
		return state.Sealed, nil
	case state.None:
		return secrecy, nil
	case state.Plain:
		if !plain {
			return "", errors.New("secrets: plain is for the admin socket and for a store without a gateway; over the network sealed and none are accepted")
		}
		return secrecy, nil
	default:
		return "", fmt.Errorf("secrets: accepted are %s, %s and, over the admin socket, %s", state.Sealed, state.None, state.Plain)
	}
}

// serve sends an export. If it fails after the answer has begun, the export has no end line. So the client notices that
// it is incomplete.
func (e *exports) serve(w http.ResponseWriter, r *http.Request, secrets state.Secrecy) {
	out, ended := newExportWriter(w, r, "application/gzip")
	defer ended()
	end, err := state.Export(r.Context(), state.ExportConfig{
		Store: e.on.store, Keys: e.on.keys, Secrets: secrets, Release: version.Text(),
	}, out)
	switch {
	case err == nil:
		e.on.measures.copiedNow(copyExport)
		e.log.Info("the store was exported", zap.Int("lines", end.Lines), zap.Int("unreadable", end.Unreadable))
	case out.begun:
		if r.Context().Err() == nil && !out.failed {
			e.log.Error("an export broke off", zap.Error(err))
		}
		panic(http.ErrAbortHandler)
	case errors.Is(err, state.ErrNoKeys):
		refuseExport(w, r, http.StatusConflict, failure.CodeBadUserInput, "there are secrets, and the gateway has no key that encrypts them: give it encryption-keys-file, "+
			"leave them out with --no-secrets, or take them in plain form over the admin socket with --plain-secrets")
	case errors.Is(err, context.Canceled):
		refuseExport(w, r, http.StatusServiceUnavailable, failure.CodeUnavailable, "the gateway stops")
	default:
		e.log.Error("the store cannot be exported", zap.Error(err))
		refuseExport(w, r, http.StatusServiceUnavailable, failure.CodeUnavailable, "the store cannot be exported now; the gateway's log says why")
	}
}

// refuseExport answers with an error in the form of the API.
func refuseExport(w http.ResponseWriter, r *http.Request, status int, code failure.Code, message string) {
	extensions := map[string]any{"code": code}
	caller := access.CallerFrom(r.Context())
	if caller.Request != "" {
		extensions["requestId"] = caller.Request
	}
	if id := span.OtherID(caller.Trace, caller.Request); id != "" {
		extensions["traceId"] = id
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"errors": []any{map[string]any{"message": message, "extensions": extensions}},
	})
}

// errInterrupted is returned by a write after the request has ended.
var errInterrupted = errors.New("the request has ended")

// exportWriter writes the body of an answer. Each write extends the deadline of the connection.
type exportWriter struct {
	to      http.ResponseWriter
	control *http.ResponseController
	// media is the media type of the body.
	media string
	// begun is set when the header of the answer is sent, failed when the client has disconnected.
	begun, failed bool

	mu    sync.Mutex // guards ended, and the deadline of the connection
	ended bool       // nothing is written any more
}

// newExportWriter returns a writer for the answer to a request. When the context of the request ends, for example
// because the gateway stops, a blocked write fails immediately. The caller must call end.
func newExportWriter(w http.ResponseWriter, r *http.Request, media string) (out *exportWriter, end func()) {
	out = &exportWriter{to: w, control: http.NewResponseController(w), media: media}
	// A read deadline would end the context of the request, and an answer may take longer.
	_ = out.control.SetReadDeadline(time.Time{})
	stop := context.AfterFunc(r.Context(), out.interrupt)
	return out, func() {
		stop()
		out.mu.Lock()
		defer out.mu.Unlock()
		out.ended = true // an interrupt that runs already leaves the connection alone
	}
}

// interrupt makes the present write and all later writes fail.
func (w *exportWriter) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		_ = w.control.SetWriteDeadline(time.Now())
	}
}

// Write implements [io.Writer].
func (w *exportWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.to.Header().Set("Content-Type", w.media)
		w.to.Header().Set("Cache-Control", "no-store")
	}
	if !w.extend() {
		return 0, errInterrupted
	}
	n, err := w.to.Write(p)
	if err != nil {
		w.failed = true
	}
	return n, err
}

// extend extends the deadline of the connection. It returns false if nothing more may be written.
func (w *exportWriter) extend() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		_ = w.control.SetWriteDeadline(time.Now().Add(exportStall))
	}
	return !w.ended
}
