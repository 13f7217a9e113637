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
	// Kind is the kind to follow. Without it and Kinds, the changes of all kinds come, without the resources
	// themselves, and only Namespace, After and Lost are used.
	Kind Kind
	// Kinds are followed together, instead of Kind. Then there is no Name.
	Kinds []Kind
	// Namespace and Name narrow the stream; empty means all.
	Namespace, Name string
	// After is the cursor last seen; empty means from the present state on.
	After string
	// Snapshot sends the state first where After is empty or has expired.
	Snapshot bool
	// Selector are tests of labels that must all hold. A resource that begins to match
	// is ADDED, and one that no longer does is DELETED.
	Selector []LabelTest
	// Filter is another condition, in the API's form; nil for none.
	Filter map[string]any
	// Format of the manifests; without one the resources come whole and without them.
	Format Format
	// NamesOnly: neither manifests nor specs are wanted.
	NamesOnly bool
	// Lost, if not nil, is called when a connection has ended, before another is made, but not if only its credential
	// has ended and is replaced.
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
	// Type is RESET, SNAPSHOT, IN_SYNC, ADDED, MODIFIED or DELETED. The API's
	// BOOKMARK is not among them: it moves the place that is resumed from. IN_SYNC
	// comes again after each new connection and each snapshot.
	Type string
	// Cursor resumes the stream after this event; empty while a snapshot is sent.
	Cursor   string
	Revision string
	// ResourceID is the global id of the resource; empty for marks.
	ResourceID string
	// Resource is nil for marks, and for DELETED of what cannot be read or may be seen no longer.
	Resource *Resource
}

// Bounds of the pauses before a connection is made again.
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

// operation returns the subscription, and its variables but for the place where it begins.
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

// Position returns the present cursor, where a stream can begin. k is any kind that can be
// listed, in a namespace; empty is all.
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

// follower keeps the position of a stream over its connections.
type follower struct {
	client    *Client
	document  string
	variables map[string]any
	// after is the cursor last seen.
	after             string
	yield             func(*Change, error) bool
	progress, stopped bool
	// token of the last connection.
	token string
	// refused is a token that must be replaced, and refusal the error with the reason.
	refused string
	refusal error
	// renewed: the token has replaced a refused one, and the gateway has not sent an event since.
	renewed bool
}

// follow connects until the stream is over.
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

// run is one connection.
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
