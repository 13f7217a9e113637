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

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/client"
)

// Request is a request to serve another catalogue.
type Request struct {
	// AllowBreaking accepts a catalogue that breaks stored resources.
	AllowBreaking bool `json:"allowBreaking,omitempty"`
	// DryRun returns what would happen without changing anything.
	DryRun bool `json:"dryRun,omitempty"`
	// Files are the new files of the gateway's folder. The keys are their paths in the folder. If Files is nil, the
	// gateway reads the files that are in the folder.
	Files map[string]string `json:"files,omitempty"`
	// Folder is the name of the folder on the client's machine. The gateway uses it in findings.
	Folder string `json:"folder,omitempty"`
	// Violations requests all stored resources that violate stricter rules, instead of only the first one of each kind.
	Violations bool `json:"violations,omitempty"`
	// Purge, if not empty, requests the removal of stored data that no catalogue describes, and nothing else. It is
	// KIND, or KIND.PATH for a field.
	Purge string `json:"purge,omitempty"`
}

// Result is the result of a request.
type Result string

// The results of a request.
const (
	// Replaced means that the catalogue is now served, or would be after a dry run.
	Replaced Result = "replaced"
	// Unchanged means that the same files are already served.
	Unchanged Result = "unchanged"
	// Refused means that the catalogue has findings or breaks stored resources. The previous catalogue is still served.
	Refused Result = "refused"
	// Failed means that there was another error. The previous catalogue is still served.
	Failed Result = "failed"
)

// Answer is the answer to a request.
type Answer struct {
	Result Result `json:"result"`
	// Hash is the hash of the outline of the served catalogue, which has everything on which stored resources depend.
	// Files is the hash of its files.
	Hash  string `json:"hash"`
	Files string `json:"files"`
	// Changes are the differences from the previous catalogue, the most severe first.
	Changes []catalogue.Difference `json:"changes,omitempty"`
	// Rebinding are the kinds whose stored references must be derived again, because their declarations have changed.
	// Until that is done, deletions of their targets wait.
	Rebinding []string `json:"rebinding,omitempty"`
	// Tightened are lines, one for each kind, about stored resources that violate stricter rules.
	Tightened []string `json:"tightened,omitempty"`
	// Hidden are lines, one for each change that hides stored values.
	Hidden []string `json:"hidden,omitempty"`
	// GivenUp are lines, one for each released version that is given up because Request.AllowBreaking is set.
	GivenUp []string `json:"givenUp,omitempty"`
	// Purged is the result of Request.Purge.
	Purged *catalogue.Purged `json:"purged,omitempty"`
	// Lines are the reasons why the catalogue was refused or the request failed.
	Lines []string `json:"lines,omitempty"`
}

// Catalogues executes requests.
type Catalogues interface {
	// Reload writes the files of the request, if there are any, to the folder of the gateway, and then serves the
	// catalogue in the folder.
	Reload(ctx context.Context, r Request) Answer
}

// Path is the HTTP path of requests, on the admin socket and on the network.
const Path = "/catalogue"

const (
	// maxRequest is the maximum size of a request in bytes. A catalogue has at most 16 MiB, including its released
	// versions, and may be twice as large as JSON.
	maxRequest = 34 << 20
	// maxRequests is the maximum number of requests that are being read, waiting, or being executed.
	maxRequests = 4
)

// NewHandler returns a handler for requests. Its answers have the form of the API, with data or errors. It executes one
// request at a time. A request waits for its turn only after it was read completely, so a slow client does not delay
// others. The handler sets the deadlines of the connection, even if they are later than those of the server.
func NewHandler(c Catalogues) http.Handler {
	held, turn := make(chan struct{}, maxRequests), make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), workTime)
		defer cancel()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(workTime + readTime))
		if !acquire(ctx, held) {
			refuse(w, http.StatusServiceUnavailable, failure.CodeUnavailable, "too many requests are under way")
			return
		}
		defer func() { <-held }()
		req, err := read(ctx, w, r)
		if err != nil {
			refuse(w, http.StatusBadRequest, failure.CodeBadUserInput, "the request cannot be read: "+err.Error())
			return
		}
		if !acquire(ctx, turn) {
			refuse(w, http.StatusServiceUnavailable, failure.CodeUnavailable, "another request is under way")
			return
		}
		defer func() { <-turn }()
		respond(w, http.StatusOK, map[string]any{"data": c.Reload(ctx, req)})
	})
}

func refuse(w http.ResponseWriter, status int, code failure.Code, message string) {
	respond(
		w,
		status,
		map[string]any{"errors": []any{map[string]any{"message": message, "extensions": map[string]any{"code": code}}}},
	)
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// acquire waits for a free place. It returns false if ctx ends before.
func acquire(ctx context.Context, places chan<- struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// read reads a request within readTime, and until ctx ends. It returns an error for an unknown field, because the
// client may rely on that field to prevent something.
func read(ctx context.Context, w http.ResponseWriter, r *http.Request) (req Request, err error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(readTime)); err != nil {
		return req, err
	}
	defer context.AfterFunc(ctx, func() { _ = control.SetReadDeadline(time.Now()) })()
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&req); err != nil {
		return req, fmt.Errorf(
			"%s; wanted is one JSON object with allowBreaking, dryRun, files, folder, violations and purge",
			decodeProblem(err),
		)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return req, errors.New("more follows the JSON object")
	}
	return req, control.SetReadDeadline(time.Time{})
}

// decodeProblem describes why a request could not be read.
func decodeProblem(err error) string {
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

// Timeout is the timeout for clients. It includes the time for which a request may wait for another one.
const Timeout = 2 * (readTime + workTime)

// absentError means that no gateway listens on a socket.
type absentError struct {
	path string
	err  error
}

func (e *absentError) Error() string {
	return fmt.Sprintf("no gateway answers at %s (%v); name its socket by --admin-socket, or its folder by --data",
		e.path, e.err)
}

// Client returns a client for the admin socket at a path.
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

// Send sends a request to a gateway. The timeout of the client should be [Timeout].
func Send(ctx context.Context, c *client.Client, req Request) (out Answer, err error) {
	err = c.Post(ctx, Path, req, &out)
	var absent *absentError
	if errors.As(err, &absent) {
		err = absent
	}
	return out, err
}
