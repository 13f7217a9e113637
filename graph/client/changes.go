package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// ChangesRequest says what a stream of changes covers.
type ChangesRequest struct {
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
	// Filter is one more, in the API's form; nil for none.
	Filter map[string]any
	// Format of the manifests; without one the resources come whole and without them.
	Format Format
	// NamesOnly: neither manifests nor specs are wanted.
	NamesOnly bool
	// Lost is told why a connection has ended, before another is made. Default: nobody is.
	Lost func(cause error)
}

// valid says what is wrong with the request.
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
	// comes again after each new connection.
	Type string
	// Cursor resumes the stream after this event; empty while a snapshot is sent.
	Cursor   string
	Revision string
	// Resource is nil for marks.
	Resource *Resource
}

// Pauses before a connection is made again.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Changes follows changes until the context ends. It survives the end of a
// connection and of the gateway: it connects again with back-off and goes on
// after the last cursor, so that no change is lost or comes twice. Where that
// is not possible any more, and Snapshot is set, a RESET comes and the state
// anew; else the iteration ends with the API's POSITION_EXPIRED. A connection
// that ends within such a state begins it again.
func (c *Client) Changes(ctx context.Context, req ChangesRequest) iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		if err := req.valid(); err != nil {
			yield(nil, err)
			return
		}
		f := follower{client: c, req: req, yield: yield}
		for pause := minPause; ; pause = min(2*pause, maxPause) {
			f.progress = false
			err := f.run(ctx)
			switch {
			case f.stopped:
				return
			case ctx.Err() != nil:
				yield(nil, ctx.Err())
				return
			case !again(err):
				yield(nil, err)
				return
			}
			if f.progress {
				pause = minPause
			}
			if req.Lost != nil {
				req.Lost(err)
			}
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case <-time.After(pause):
			}
		}
	}
}

// again says whether a stream that ended so may be taken up again.
func again(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Extensions.Retryable
	}
	return errors.Is(err, errEnded) || errors.Is(err, io.EOF)
}

// follower keeps the place of a stream over its connections.
type follower struct {
	client            *Client
	req               ChangesRequest
	yield             func(*Change, error) bool
	progress, stopped bool
}

func (f *follower) run(ctx context.Context) error {
	vars := parts(f.req.Format, f.req.NamesOnly)
	vars["snapshot"], vars["filter"] = f.req.Snapshot, filterOf(f.req.Selector, f.req.Filter)
	add := func(name, value string) {
		if value != "" {
			vars[name] = value
		}
	}
	if f.req.Kind.Scope != "GLOBAL" {
		add("namespace", f.req.Namespace)
	}
	add("name", f.req.Name)
	add("after", f.req.After)
	document := manyChangesDocument
	if len(f.req.Kinds) == 0 {
		document = f.req.Kind.document(changesTemplate)
	} else {
		names := make([]string, len(f.req.Kinds))
		for i, k := range f.req.Kinds {
			names[i] = k.Name
		}
		vars["kinds"] = names
	}
	return f.client.subscribe(ctx, document, vars, func(data json.RawMessage) error {
		var out struct{ Event Change }
		if err := json.Unmarshal(data, &out); err != nil {
			return fmt.Errorf("answer of the gateway: %w", err)
		}
		f.progress = true
		switch {
		case out.Event.Type == "RESET":
			f.req.After = "" // nothing before it can be continued from
		case out.Event.Cursor != "":
			f.req.After = out.Event.Cursor
		}
		if out.Event.Type == "BOOKMARK" {
			return nil
		}
		if !f.yield(&out.Event, nil) {
			f.stopped = true
			return errEnded
		}
		return nil
	})
}
