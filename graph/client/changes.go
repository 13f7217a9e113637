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
	// Kind is the kind to follow. Without Kind and Kinds, the stream has the changes of all kinds,
	// without the resources themselves; then only Namespace, After and Lost are used.
	Kind Kind
	// Kinds are several kinds to follow, instead of Kind. Then Name must be empty.
	Kinds []Kind
	// Namespace and Name narrow the stream; empty means all.
	Namespace, Name string
	// After is the last cursor received; empty means to start from the present state.
	After string
	// Snapshot requests the present state first if After is empty or has expired.
	Snapshot bool
	// Selector has tests of labels that must all hold. A resource that starts to match
	// is ADDED, and one that no longer matches is DELETED.
	Selector []LabelTest
	// Filter is another condition, in the API's form; nil for none.
	Filter map[string]any
	// Format of the manifests; if it is empty, whole resources are sent without
	// manifests.
	Format Format
	// NamesOnly requests neither manifests nor specs.
	NamesOnly bool
	// Lost, if not nil, is called when a connection has ended, before the next one is made. It is
	// not called if the connection ended only because its credential has ended and is replaced.
	Lost func(cause error)
}

// valid returns an error for a request that cannot be sent.
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
	// Type is RESET, SNAPSHOT, IN_SYNC, ADDED, MODIFIED or DELETED. BOOKMARK events of
	// the API are not returned; they only move the cursor. IN_SYNC is repeated after
	// each new connection and each snapshot.
	Type string
	// Cursor resumes the stream after this event; empty during a snapshot.
	Cursor   string
	Revision string
	// ResourceID is the global id of the resource; empty for RESET and IN_SYNC.
	ResourceID string
	// Resource is nil for RESET and IN_SYNC, and for DELETED of a resource that cannot be read or
	// that the caller may no longer see.
	Resource *Resource
}

// Bounds of the delay before a new connection.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Changes follows changes until the context ends. It survives the end of a
// connection and of the gateway: it connects again with back-off and goes on
// after the last cursor, so that no change is lost or repeated. If the gateway
// no longer has the changes after the cursor, and Snapshot is set, a RESET comes and the whole
// state again; else the iteration ends with the API's POSITION_EXPIRED. If a connection
// ends within a snapshot, the snapshot begins again.
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

// Position returns the present cursor, at which a stream can start. k is any kind that can
// be listed; an empty namespace means all.
func (c *Client) Position(ctx context.Context, k Kind, namespace string) (string, error) {
	vars := k.within(namespace, map[string]any{"kind": k.Name})
	var out struct{ Resources struct{ ChangeCursor string } }
	err := c.Do(ctx, positionDocument, vars, &out)
	return out.Resources.ChangeCursor, err
}

// resumable reports whether a stream that ended with err may be resumed.
func resumable(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Extensions.Retryable
	}
	return errors.Is(err, errEnded) || errors.Is(err, io.EOF) || errors.Is(err, ErrNoTokenNow)
}

// follower is a stream of changes over all its connections.
type follower struct {
	client    *Client
	document  string
	variables map[string]any
	// after is the last cursor received.
	after             string
	yield             func(*Change, error) bool
	progress, stopped bool
	// token of the last connection.
	token string
	// refused is a token that must be replaced, and refusal the error that says why.
	refused string
	refusal error
	// renewed says that the token has replaced a refused one and that no event has come since.
	renewed bool
}

// follow makes connections until the stream is over.
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

// run makes one connection and reads it to its end.
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

// take yields an event and keeps its cursor.
func (f *follower) take(data json.RawMessage) error {
	var out struct{ Event Change }
	if err := json.Unmarshal(data, &out); err != nil {
		return errors.New("what the gateway answered cannot be read")
	}
	f.progress, f.renewed = true, false
	switch {
	case out.Event.Type == "RESET":
		f.after = "" // nothing before it can be continued from
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
