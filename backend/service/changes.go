package service

import (
	"context"

	"github.com/sluicegw/sluice/backend"
)

// Changes is one stream of changes. One goroutine calls Next; Close ends it.
type Changes struct {
	service *Service
	watcher backend.Watcher
	kinds   map[string]*kind
	req     ChangesRequest
	// begin is the cursor of the IN_SYNC that a stream without a cursor begins
	// with; empty once it was sent, or if it comes after a replay.
	begin string
	// inSync says that IN_SYNC was sent.
	inSync bool
}

// Changes begins a stream: with a cursor the changes after it, then IN_SYNC,
// then what happens; without one IN_SYNC at once.
func (s *Service) Changes(ctx context.Context, c Caller, req ChangesRequest) (*Changes, error) {
	out := &Changes{service: s, req: req, kinds: map[string]*kind{}}
	names := req.Kinds
	if len(names) == 0 {
		for _, k := range s.kinds.ordered {
			if k.Has(backend.VerbWatch) {
				names = append(names, k.Name)
			}
		}
	}
	for _, name := range names {
		k, err := s.kind(name)
		if err != nil {
			return nil, err
		}
		if err := s.authorize(ctx, c, k.Kind, backend.VerbWatch); err != nil {
			return nil, err
		}
		out.kinds[k.Name] = k
	}
	var v violations
	if req.Namespace != nil {
		checkNamespace(&v, "namespace", *req.Namespace)
	}
	if req.Name != nil {
		checkName(&v, "name", *req.Name)
	}
	if err := v.err(backend.Key{}); err != nil {
		return nil, err
	}
	from, err := s.watchFrom(ctx, req.After)
	if err != nil {
		return nil, err
	}
	if req.After == nil {
		out.begin = from.String()
	}
	watcher, err := s.cfg.Store.Watch(ctx, backend.Watch{From: from})
	if err != nil {
		return nil, translate(err, backend.Key{})
	}
	out.watcher = watcher
	return out, nil
}

func (s *Service) watchFrom(ctx context.Context, after *string) (backend.Position, error) {
	if after == nil {
		p, err := s.cfg.Store.Position(ctx)
		if err != nil {
			return p, translate(err, backend.Key{})
		}
		return p, nil
	}
	p, err := backend.ParsePosition(*after)
	if err != nil {
		return p, &Error{Code: CodeCursorInvalid, Path: "after", Message: "after: not a cursor of a change; take it from the cursor field of an event"}
	}
	return p, nil
}

// Close ends the stream.
func (c *Changes) Close() { c.watcher.Close() }

// Next waits for the next events of the stream, at least one. Any error ends it.
func (c *Changes) Next(ctx context.Context) ([]Change, error) {
	if c.begin != "" {
		mark := Change{Type: ChangeInSync, Cursor: c.begin}
		c.begin, c.inSync = "", true
		return []Change{mark}, nil
	}
	for {
		d, err := c.watcher.Next(ctx)
		if err != nil {
			return nil, translate(err, backend.Key{})
		}
		var out []Change
		for _, e := range d.Events {
			if c.covers(e.Resource.Key) {
				out = append(out, Change{Type: ChangeType(e.Type.String()), Cursor: e.Position.String(), Revision: e.Revision.String(), Stored: e.Resource, service: c.service})
			}
		}
		if d.CaughtUp && !c.inSync {
			c.inSync = true
			out = append(out, Change{Type: ChangeInSync, Cursor: d.Position.String()})
		}
		if len(out) > 0 {
			return out, nil
		}
	}
}

func (c *Changes) covers(key backend.Key) bool {
	return c.kinds[key.Kind] != nil &&
		(c.req.Namespace == nil || *c.req.Namespace == key.Namespace) &&
		(c.req.Name == nil || *c.req.Name == key.Name)
}

// Object decodes the resource of the event: nil for a mark, and for a DELETED
// one that is unreadable. An unreadable ADDED or MODIFIED is UNREADABLE; the
// stream goes on.
func (c *Change) Object() (backend.Object, error) {
	if c.Stored == nil {
		return nil, nil
	}
	k, err := c.service.kind(c.Stored.Kind)
	if err != nil {
		return nil, err
	}
	obj, err := k.decode(c.Stored)
	if err == nil {
		return obj, nil
	}
	c.service.unreadable(c.Stored, err)
	if c.Type == ChangeDeleted {
		return nil, nil
	}
	return nil, translate(err, c.Stored.Key)
}
