package reload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
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
	// Changes of the catalogue to the one before, a line each.
	Changes []string `json:"changes,omitempty"`
	// Lines say why it was refused or failed.
	Lines []string `json:"lines,omitempty"`
}

// Catalogues is what a gateway does with requests.
type Catalogues interface {
	// Reload serves what is in the gateway's folder, or puts other files there first.
	Reload(ctx context.Context, r Request) Answer
}

const (
	// maxRequest bounds a request, in bytes: a catalogue of 16 MiB as JSON, twice over.
	maxRequest = 34 << 20
	// maxRequests is how many requests are held at a time: read, or waiting for their turn.
	maxRequests = 4
	// maxAnswer bounds what a client reads, in bytes.
	maxAnswer = 16 << 20
	// reloadPath is where requests go.
	reloadPath = "/reload"
)

// handler answers requests, one at a time. A request has its turn once it was read,
// so that nobody waits for a client that sends nothing.
func handler(c Catalogues) http.Handler {
	held, turn := make(chan struct{}, maxRequests), make(chan struct{}, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+reloadPath, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), workTime)
		defer cancel()
		if !take(ctx, held) {
			http.Error(w, "too many requests are under way", http.StatusServiceUnavailable)
			return
		}
		defer func() { <-held }()
		req, err := read(w, r)
		if err != nil {
			http.Error(w, "the request cannot be read: "+err.Error(), http.StatusBadRequest)
			return
		}
		if !take(ctx, turn) {
			http.Error(w, "another request is under way", http.StatusServiceUnavailable)
			return
		}
		defer func() { <-turn }()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.Reload(ctx, req))
	})
	return mux
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

// read reads a request, which has to come within readTime. What is not known is
// refused: it may be a flag that was to hold something back.
func read(w http.ResponseWriter, r *http.Request) (req Request, err error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(readTime)); err != nil {
		return req, err
	}
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

// Send asks the gateway that listens at a path.
func Send(ctx context.Context, path string, req Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*(readTime+workTime))
	defer cancel()
	raw, err := json.Marshal(req)
	if err != nil {
		return Answer{}, err
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", path)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway"+reloadPath, bytes.NewReader(raw))
	if err != nil {
		return Answer{}, err
	}
	res, err := client.Do(r)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return Answer{}, fmt.Errorf("no gateway answers at %s (%w); name its socket by --admin-socket, or its folder by --data", path, dial.Err)
		}
		return Answer{}, fmt.Errorf("the gateway at %s does not answer: %w", path, err)
	}
	defer func() { _ = res.Body.Close() }()
	body := io.LimitReader(res.Body, maxAnswer)
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(body, 1<<10))
		return Answer{}, fmt.Errorf("the gateway answers %s: %s", res.Status, bytes.TrimSpace(text))
	}
	var out Answer
	if err := json.NewDecoder(body).Decode(&out); err != nil {
		return Answer{}, errors.New("the gateway's answer is cut off, or not JSON")
	}
	return out, nil
}
