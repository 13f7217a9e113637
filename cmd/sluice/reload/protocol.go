package reload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	gate "github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/client"
)

// Request asks for another catalogue.
type Request struct {
	// AllowBreaking serves this catalogue although it breaks what is stored.
	AllowBreaking bool `json:"allowBreaking,omitempty"`
	// DryRun changes nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// Files are to be the gateway's folder, by their names. Null: what is in it is read.
	Files map[string]string `json:"files,omitempty"`
	// Folder is what lines about Files call their folder.
	Folder string `json:"folder,omitempty"`
}

// Result says what became of a request.
type Result string

// The results.
const (
	// Replaced: another catalogue is served now; of a dry run: it would be.
	Replaced Result = "replaced"
	// Unchanged: the files are those that are served.
	Unchanged Result = "unchanged"
	// Refused: the catalogue has findings, or breaks what is stored. The one that is
	// served stays.
	Refused Result = "refused"
	// Failed: something else is in the way. The catalogue that is served stays.
	Failed Result = "failed"
)

// Answer to a request.
type Answer struct {
	Result Result `json:"result"`
	// Hash of what the catalogue says of stored resources, and that of its files: of
	// the one that is served now.
	Hash  string `json:"hash"`
	Files string `json:"files"`
	// Changes of the catalogue to the one before, the most severe first.
	Changes []gate.Change `json:"changes,omitempty"`
	// Tightened says what stored resources break by it that they did not break before, a line for each kind.
	Tightened []string `json:"tightened,omitempty"`
	// Lines say why it was refused or failed.
	Lines []string `json:"lines,omitempty"`
}

// Catalogues is what a gateway does with requests.
type Catalogues interface {
	// Reload serves what is in the gateway's folder, or puts other files there first.
	Reload(ctx context.Context, r Request) Answer
}

// Path is where requests go, on the admin socket as on the network.
const Path = "/catalogue"

const (
	// maxRequest bounds a request, in bytes: a catalogue of 16 MiB as JSON, twice over.
	maxRequest = 34 << 20
	// maxRequests is how many requests are held at a time: read, or waiting for their turn.
	maxRequests = 4
)

// NewHandler answers requests in the form of the API, with data or errors. It answers one at a time, wherever they
// come from. A request has its turn once it was read, so that nobody waits for a client that sends nothing.
// It sets the deadlines of the connection: they may be later than the server's own.
func NewHandler(c Catalogues) http.Handler {
	held, turn := make(chan struct{}, maxRequests), make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), workTime)
		defer cancel()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(workTime + readTime))
		if !take(ctx, held) {
			refuse(w, http.StatusServiceUnavailable, failure.CodeUnavailable, "too many requests are under way")
			return
		}
		defer func() { <-held }()
		req, err := read(ctx, w, r)
		if err != nil {
			refuse(w, http.StatusBadRequest, failure.CodeBadUserInput, "the request cannot be read: "+err.Error())
			return
		}
		if !take(ctx, turn) {
			refuse(w, http.StatusServiceUnavailable, failure.CodeUnavailable, "another request is under way")
			return
		}
		defer func() { <-turn }()
		respond(w, http.StatusOK, map[string]any{"data": c.Reload(ctx, req)})
	})
}

func refuse(w http.ResponseWriter, status int, code failure.Code, message string) {
	respond(w, status, map[string]any{"errors": []any{map[string]any{"message": message, "extensions": map[string]any{"code": code}}}})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// take waits for a place; false if ctx ends first.
func take(ctx context.Context, places chan<- struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// read reads a request, which has to come within readTime and before ctx ends. What is not known is
// refused: it may be a flag that was to hold something back.
func read(ctx context.Context, w http.ResponseWriter, r *http.Request) (req Request, err error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(readTime)); err != nil {
		return req, err
	}
	defer context.AfterFunc(ctx, func() { _ = control.SetReadDeadline(time.Now()) })()
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&req); err != nil {
		return req, fmt.Errorf("%s; wanted is one JSON object with allowBreaking, dryRun, files and folder", unread(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return req, errors.New("more follows the JSON object")
	}
	return req, control.SetReadDeadline(time.Time{})
}

// unread says in words why a request was not read.
func unread(err error) string {
	var large *http.MaxBytesError
	var mistyped *json.UnmarshalTypeError
	name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case errors.As(err, &large):
		return fmt.Sprintf("it has more than %d bytes", large.Limit)
	case errors.As(err, &mistyped) && mistyped.Field != "":
		return fmt.Sprintf("%s has a value of another type", mistyped.Field)
	case unknown:
		return "unknown field " + name
	default:
		return "it is cut off, or not JSON"
	}
}

// Timeout is how long a client waits for the answer to a request, which may wait for another one.
const Timeout = 2 * (readTime + workTime)

// absentError says that no gateway listens at a path.
type absentError struct {
	path string
	err  error
}

func (e *absentError) Error() string {
	return fmt.Sprintf("no gateway answers at %s (%v); name its socket by --admin-socket, or its folder by --data", e.path, e.err)
}

// Client returns a client of the gateway whose admin socket is at a path.
func Client(path string) (*client.Client, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", path)
		var failed *net.OpError
		if errors.As(err, &failed) {
			return nil, &absentError{path, failed.Err}
		}
		return conn, err
	}
	return client.New(client.Config{
		Server: "http://admin-socket", Timeout: Timeout,
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}},
	})
}

// Send asks a gateway. The timeout of the client should be [Timeout].
func Send(ctx context.Context, c *client.Client, req Request) (out Answer, err error) {
	err = c.Post(ctx, Path, req, &out)
	var absent *absentError
	if errors.As(err, &absent) {
		err = absent
	}
	return out, err
}
