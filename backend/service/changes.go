package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
)

// Changes is one stream of changes. One goroutine calls Next; Close ends it.
type Changes struct {
	service *Service
	scope   changeScope
	// watcher follows the log; nil while the state is sent.
	watcher backend.Watcher
	// state sends a snapshot; nil if there is none to send any more.
	state *snapshot
	// begin is the cursor of the IN_SYNC that the stream begins with; empty once
	// it was sent, or if it comes after a replay.
	begin string
	// inSync says that IN_SYNC was sent.
	inSync bool
}

// changeScope is what a stream covers.
type changeScope struct {
	kinds           []*kind
	namespace, name *string
	filter          expr
	// updated says that the filter looks at updatedAt, of which the log knows no value before a change.
	updated bool
}

// Changes begins a stream: with a cursor the changes after it, then IN_SYNC,
// then what happens; without one IN_SYNC at once. With Snapshot, and no cursor
// or one that has expired: RESET, the state as SNAPSHOT events, then IN_SYNC.
func (s *Service) Changes(ctx context.Context, c Caller, req ChangesRequest) (*Changes, error) {
	scope, err := s.changeScope(ctx, c, req)
	if err != nil {
		return nil, err
	}
	out := &Changes{service: s, scope: scope}
	var from backend.Position
	switch {
	case req.After != nil:
		if from, err = backend.ParsePosition(*req.After); err != nil {
			return nil, &Error{Code: CodeCursorInvalid, Path: "after", Message: "after: not a cursor of a change; take it from the cursor field of an event"}
		}
	case req.Snapshot:
		out.state = newSnapshot(s, scope)
		return out, nil
	default:
		if from, err = s.cfg.Store.Position(ctx); err != nil {
			return nil, translate(err, backend.Key{})
		}
		out.begin = from.String()
	}
	out.watcher, err = s.cfg.Store.Watch(ctx, backend.Watch{From: from})
	if errors.Is(err, backend.ErrPositionExpired) && req.Snapshot {
		out.state = newSnapshot(s, scope)
		return out, nil
	}
	if err != nil {
		return nil, translate(err, backend.Key{})
	}
	return out, nil
}

func (s *Service) changeScope(ctx context.Context, c Caller, req ChangesRequest) (changeScope, error) {
	scope := changeScope{namespace: req.Namespace, name: req.Name}
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
			return scope, err
		}
		if err := s.authorize(ctx, c, k.Kind, backend.VerbWatch); err != nil {
			return scope, err
		}
		if scope.kind(k.Name) == nil {
			scope.kinds = append(scope.kinds, k)
		}
	}
	var v violations
	if req.Namespace != nil {
		checkNamespace(&v, "namespace", *req.Namespace)
	}
	if req.Name != nil {
		checkName(&v, "name", *req.Name)
	}
	if err := v.err(backend.Key{}); err != nil {
		return scope, err
	}
	if req.Filter == nil {
		return scope, nil
	}
	if len(scope.kinds) != 1 {
		return scope, badInput("filter", "a filter needs a stream of one kind")
	}
	var err error
	scope.filter, _, err = scope.kinds[0].filter(req.Filter)
	scope.updated = uses(scope.filter, updatedAttribute)
	return scope, err
}

// Close ends the stream.
func (c *Changes) Close() {
	if c.watcher != nil {
		c.watcher.Close()
	}
}

// Next waits for the next events of the stream, at least one. Any error ends it.
func (c *Changes) Next(ctx context.Context) ([]Change, error) {
	if c.state != nil {
		return c.nextOfState(ctx)
	}
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
		for i := range d.Events {
			if change, ok := c.scope.change(&d.Events[i]); ok {
				change.Cursor, change.service = d.Events[i].Position.String(), c.service
				out = append(out, change)
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

// nextOfState sends the next part of the snapshot, and goes over to the log behind it.
func (c *Changes) nextOfState(ctx context.Context) ([]Change, error) {
	out, err := c.state.next(ctx)
	if err != nil {
		return nil, translate(err, backend.Key{})
	}
	if len(out) > 0 {
		return out, nil
	}
	at := c.state.position
	if c.watcher, err = c.service.cfg.Store.Watch(ctx, backend.Watch{From: at}); err != nil {
		return nil, translate(err, backend.Key{})
	}
	c.state, c.inSync = nil, true
	return []Change{{Type: ChangeInSync, Cursor: at.String()}}, nil
}

func (s *changeScope) kind(name string) *kind {
	for _, k := range s.kinds {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// covers says whether the scope has a key, whatever the filter says.
func (s *changeScope) covers(key backend.Key) bool {
	return s.kind(key.Kind) != nil && (s.namespace == nil || *s.namespace == key.Namespace) && (s.name == nil || *s.name == key.Name)
}

// change is what a log entry means to the stream: entering the filter is
// ADDED, leaving it DELETED.
func (s *changeScope) change(e *backend.Event) (Change, bool) {
	if !s.covers(e.Resource.Key) {
		return Change{}, false
	}
	out := Change{Type: ChangeType(e.Type.String()), Revision: e.Revision.String(), Stored: e.Resource}
	if s.filter == nil {
		return out, true
	}
	k := s.kinds[0]
	after := e.Type != backend.Deleted && s.matches(k, e.Resource)
	var before, known bool
	switch {
	case e.Type == backend.Added:
		known = true
	case e.Type == backend.Deleted:
		before, known = s.matches(k, e.Resource), true
	case e.FingerprintBefore == k.fingerprint && !s.updated:
		before, known = s.filter.match(&view{Resource: e.Resource, rows: e.RowsBefore}), true
	}
	switch {
	case !known && after:
		out.Type = ChangeModified
	case !known, before && !after:
		out.Type = ChangeDeleted
	case after && !before:
		out.Type = ChangeAdded
	case !after:
		return Change{}, false
	}
	return out, true
}

// matches judges a state by the filter. One that cannot be read matches nothing.
func (s *changeScope) matches(k *kind, r *backend.Resource) bool {
	v, err := k.see(r)
	return err == nil && s.filter.match(v)
}

// uses says whether a filter looks at an attribute.
func uses(e expr, attribute string) bool {
	switch e := e.(type) {
	case all:
		return usesAny(e, attribute)
	case some:
		return usesAny(e, attribute)
	case none:
		return uses(e.expr, attribute)
	case test:
		return e.attribute == attribute
	}
	return false
}

func usesAny(list []expr, attribute string) bool {
	for _, e := range list {
		if uses(e, attribute) {
			return true
		}
	}
	return false
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
