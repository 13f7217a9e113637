package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"time"

	"github.com/sluicegw/sluice/internal/wait"
)

// ChangesRequest describes a stream of changes.
type ChangesRequest struct {
	// Kind is the kind to follow. If neither Kind nor Kinds is set, the stream has the changes of all kinds, but
	// without the resources. Then only Namespace, After and Lost are used.
	Kind Kind
	// Kinds are the kinds to follow, as an alternative to Kind. Name must then be empty.
	Kinds []Kind
	// Namespace and Name limit the stream; empty means all.
	Namespace, Name string
	// After is the cursor after which the stream starts; empty means the present state.
	After string
	// Snapshot requests the present state first, if After is empty or has expired.
	Snapshot bool
	// Selector limits the stream to resources for which all tests hold. A resource that begins to match is ADDED, and a
	// resource that no longer matches is DELETED.
	Selector []LabelTest
	// Filter also limits the stream, by a filter in the form of the API; nil for no filter.
	Filter map[string]any
	// Format is the format of the manifests. If it is empty, events have whole resources and no manifests.
	Format Format
	// NamesOnly leaves out manifests and specs.
	NamesOnly bool
	// Lost, if not nil, is called after a connection has ended, before a new one is made. It is not called if a
	// connection ended only because its credential had expired and was replaced.
	Lost func(cause error)
}

// valid returns an error if the request contradicts itself, or if the gateway does not offer WATCH for a kind.
func (r *ChangesRequest) valid() error {
	if len(r.Kinds) == 0 {
		return r.Kind.offers("WATCH")
	}
	if r.Kind.Name != "" || r.Name != "" {
		return errors.New("a stream of several kinds has neither Kind nor Name")
	}
	for _, k := range r.Kinds {
		if err := k.offers("WATCH"); err != nil {
			return err
		}
	}
	return nil
}

// Change is one event of a stream.
type Change struct {
	// Type is RESET, SNAPSHOT, IN_SYNC, ADDED, MODIFIED or DELETED. IN_SYNC comes once after each new connection and
	// after each snapshot. BOOKMARK events of the API are not returned; they only move the cursor.
	Type string
	// Cursor is the cursor after this event, for [ChangesRequest.After]; empty during a snapshot.
	Cursor   string
	Revision string
	// ResourceID is the global id of the resource; empty for RESET and IN_SYNC.
	ResourceID string
	// Resource is the resource; nil for RESET and IN_SYNC, and for DELETED if the resource cannot be read or the caller
	// may no longer see it.
	Resource *Resource
}

// The shortest and the longest pause before a new connection.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Changes returns a stream of changes that lasts until ctx ends. It continues when a connection ends or the gateway
// restarts: it connects again, with growing pauses, and resumes after the last cursor. So no change is missing or
// repeated.
//
// If the gateway no longer has the changes after the cursor, and Snapshot is set, a RESET follows, and then the whole
// state. Without Snapshot the stream ends with the error POSITION_EXPIRED of the API. If a connection ends during a
// snapshot, the snapshot begins again.
func (c *Client) Changes(ctx context.Context, req ChangesRequest) iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		if err := req.valid(); err != nil {
			yield(nil, err)
			return
		}
		document, vars := req.operation()
		f := follower{client: c, document: document, variables: vars, after: req.After, yield: yield}
		f.follow(ctx, req.Lost)
	}
}

// operation returns the subscription and its variables, except for the cursor.
func (r *ChangesRequest) operation() (document string, variables map[string]any) {
	if r.Kind.Singular == "" && len(r.Kinds) == 0 {
		return eventsDocument, Kind{}.within(r.Namespace, map[string]any{})
	}
	vars := r.Kind.within(r.Namespace, parts(r.Format, r.NamesOnly))
	vars["snapshot"], vars["filter"] = r.Snapshot, filterOf(r.Selector, r.Filter)
	if r.Name != "" {
		vars["name"] = r.Name
	}
	if len(r.Kinds) == 0 {
		return r.Kind.document(changesTemplate), vars
	}
	names := make([]string, len(r.Kinds))
	for i, k := range r.Kinds {
		names[i] = k.Name
	}
	vars["kinds"] = names
	return manyChangesDocument, vars
}

// Position returns the present cursor, from which a stream can start. k may be any kind that can be listed. An empty
// namespace means all.
func (c *Client) Position(ctx context.Context, k Kind, namespace string) (string, error) {
	vars := k.within(namespace, map[string]any{"kind": k.Name})
	var out struct{ Resources struct{ ChangeCursor string } }
	err := c.Do(ctx, positionDocument, vars, &out)
	return out.Resources.ChangeCursor, err
}

// resumable reports whether a stream that ended with err can be resumed.
func resumable(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Extensions.Retryable
	}
	return errors.Is(err, errEnded) || errors.Is(err, io.EOF) || errors.Is(err, ErrNoTokenNow)
}

// follower is the state of a stream of changes, over all its connections.
type follower struct {
	client    *Client
	document  string
	variables map[string]any
	// after is the last cursor received.
	after             string
	yield             func(*Change, error) bool
	progress, stopped bool
	// token is the token of the last connection.
	token string
	// refused is a token that must be replaced; empty if there is none. refusal is the error with which it was refused.
	refused string
	refusal error
	// renewed is set if the token has replaced a refused one, and no event has come since.
	renewed bool
}

// follow makes one connection after another until the stream ends.
func (f *follower) follow(ctx context.Context, lost func(cause error)) {
	backoff := wait.Backoff{Least: minPause, Most: maxPause}
	for {
		f.progress = false
		err := f.run(ctx)
		switch {
		case f.stopped:
			return
		case ctx.Err() != nil:
			f.yield(nil, ctx.Err())
			return
		case unauthenticated(err) && f.token != "" && f.refused == "" && !f.renewed:
			f.refused, f.refusal = f.token, err
		case !resumable(err):
			f.yield(nil, err)
			return
		}
		if f.progress {
			backoff.Reset()
		}
		if lost != nil && !unauthenticated(err) {
			lost(err)
		}
		if !backoff.Wait(ctx) {
			f.yield(nil, ctx.Err())
			return
		}
	}
}

// run makes one connection and reads events until it ends.
func (f *follower) run(ctx context.Context) error {
	token, err := f.client.bearer(ctx, f.refused)
	if err != nil {
		return err
	}
	if f.refused != "" {
		if token == f.refused || token == "" {
			return f.refusal
		}
		f.renewed = true
	}
	f.token, f.refused = token, ""
	vars := maps.Clone(f.variables)
	if f.after != "" {
		vars["after"] = f.after
	}
	payload, err := json.Marshal(map[string]any{"query": f.document, "variables": vars})
	if err != nil {
		return fmt.Errorf("variables: %w", err)
	}
	return f.client.subscribe(ctx, token, payload, f.take)
}

// take yields an event and stores its cursor.
func (f *follower) take(data json.RawMessage) error {
	var out struct{ Event Change }
	if err := json.Unmarshal(data, &out); err != nil {
		return errors.New("what the gateway answered cannot be read")
	}
	f.progress, f.renewed = true, false
	switch {
	case out.Event.Type == "RESET":
		f.after = "" // the stream cannot be resumed at a cursor before the RESET
	case out.Event.Cursor != "":
		f.after = out.Event.Cursor
	}
	if out.Event.Type == "BOOKMARK" {
		return nil
	}
	if !f.yield(&out.Event, nil) {
		f.stopped = true
		return errEnded
	}
	return nil
}
