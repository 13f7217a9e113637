package change

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/query"
)

// transition leads a stream from one scope to another, after the caller's rights have changed. It takes a state of the
// index, the view, and sends:
//
//	events of the log before the view     if both scopes contain the resource; a resource that was lost
//	                                      is DELETED at its first change
//	the view, in the order of a snapshot  DELETED for lost resources, ADDED for gained ones
//	BOOKMARK                              the first cursor with the stamp of the new rights
//	events after the view                 by the new scope
//
// For a lost resource only its key is sent. If the rights change again meanwhile, a second transition begins where the
// first one stopped. Up to that place the client has resources by the newer scope, and beyond it by the older one:
//
//	a ......... place ............. z
//	  newer scope  |  older scope
type transition struct {
	to   scope
	held []keyRange // ranges of keys, each with the held scope: the scope by which the client has its resources
	// gone has the resources that a held scope contains and that the client does not have, because it was sent DELETED
	// for them or they were created after the loss. Those that the new scope contains are read one by one at the end.
	gone map[backend.Key]struct{}
	// view is nil until the log was read up to the view. The view has no kinds if the index no longer follows the
	// store, for example after its catalogue was replaced.
	view *index.View
	// at is the log position of the view.
	at backend.Position
	// kind and after are the position in the view, as in a snapshot.
	kind  int
	after []byte
	// regained are the resources in gone for which ADDED has to be sent.
	regained []backend.Key
}

// keyRange is a range of keys, in the order of a snapshot. The client has the resources in the range by one scope. The
// range begins where the previous one ends. Its end is before the key end in the kind with the index kind.
type keyRange struct {
	scope scope
	kind  int
	end   []byte
}

// beginTransition begins a transition to a scope. If another transition is in progress, the new one begins where that
// transition stopped.
func (c *Stream) beginTransition(to scope) {
	next := &transition{
		to:   to,
		held: []keyRange{{scope: c.scope, kind: len(to.kinds)}},
		gone: map[backend.Key]struct{}{},
	}
	if t := c.transition; t != nil {
		next.held, next.gone = t.held, t.gone
		if t.view != nil {
			next.held = append([]keyRange{{scope: t.to, kind: t.kind, end: t.after}}, t.rest()...)
		}
	}
	c.scope, c.transition = to, next
}

// forgetRegained removes the regained resources from gone, except those whose events are still in waiting.
func (t *transition) forgetRegained(waiting []Change) {
	for _, key := range t.regained {
		if !slices.ContainsFunc(waiting, func(e Change) bool { return e.Key == key }) {
			delete(t.gone, key)
		}
	}
	t.regained = nil
}

// rest returns the held ranges that end after the current position. The first of them may begin before the position.
func (t *transition) rest() []keyRange {
	held := t.held
	for len(held) > 0 && (held[0].kind < t.kind || held[0].kind == t.kind && string(held[0].end) <= string(t.after)) {
		held = held[1:]
	}
	return held
}

// has reports whether the client has a resource. It assumes that the resource exists and matches the filter.
func (t *transition) has(key backend.Key) bool {
	if _, gone := t.gone[key]; gone {
		return false
	}
	for i := range t.held {
		if s := &t.held[i]; t.to.before(key, s.kind, s.end) {
			return s.scope.permits(key)
		}
	}
	return false
}

// covers reports whether the new scope or a held scope contains a key. The watch delivers the changes of all these
// scopes.
func (t *transition) covers(key backend.Key) bool {
	return t.to.asks(key) &&
		(t.to.permits(key) || slices.ContainsFunc(t.held, func(s keyRange) bool { return s.scope.permits(key) }))
}

// translate translates events from before the view. If the rights have changed again, it also translates events that
// were not sent yet.
func (t *transition) translate(events []Change) (out []Change) {
	for i := range events {
		e := &events[i]
		if text, _, err := query.ParseChangeCursor(e.Cursor); err == nil {
			e.Cursor = query.ChangeCursor(text, unfinished)
		}
		switch {
		case e.Key == backend.Key{}, e.Stored == nil: // a mark, or the loss of a resource
		case !t.has(e.Key):
			continue
		case t.to.permits(e.Key):
		default:
			t.gone[e.Key] = struct{}{}
			if e.Type == Added {
				continue
			}
			*e = Change{Type: Deleted, Key: e.Key, Cursor: e.Cursor, Number: e.Number}
		}
		out = append(out, *e)
	}
	return out
}

// nextOfTransition returns the next events of a transition. It returns none if more of the log must be read first.
func (c *Stream) nextOfTransition(ctx context.Context) (out []Change, err error) {
	t := c.transition
	t.forgetRegained(nil)
	if t.view == nil {
		if c.watcher == nil || !c.watcher.Live() {
			return nil, nil
		}
		if out, err = c.takeView(ctx); len(out) > 0 || err != nil {
			return out, err
		}
	}
	for t.kind < len(t.to.kinds) {
		if out, err = c.nextDifferences(ctx); len(out) > 0 || err != nil {
			return out, err
		}
	}
	for key := range t.gone {
		if t.regained == nil && t.to.permits(key) {
			if out, err = c.returnRegained(ctx); len(out) > 0 || err != nil {
				return out, err
			}
		}
	}
	return c.finishTransition(), nil
}

// takeView takes the view and returns the events that precede the view.
func (c *Stream) takeView(ctx context.Context) ([]Change, error) {
	t := c.transition
	for range maxResets {
		d, ok, err := c.watcher.Cover(t.covers, func() {
			view := c.feed.cfg.Reader.Current()
			t.view = &view
			_, t.at, _ = c.feed.cfg.Reader.PolicySource().Current()
		})
		if err != nil {
			return nil, err
		}
		if ok {
			return t.translate(c.changes(&d)), nil
		}
		// The watch has read the log further than the hub. The hub has caught up once the roles and bindings are of a
		// later state.
		if err := c.feed.cfg.Reader.AwaitPolicy(ctx); err != nil {
			return nil, err
		}
	}
	return nil, rightsChangedError{}
}

// nextDifferences returns events for the next resources of the view that only one of the two scopes contains.
func (c *Stream) nextDifferences(ctx context.Context) (out []Change, err error) {
	t := c.transition
	k, held := t.to.kinds[t.kind], t.rest()[0]
	last := held.kind == t.kind // the range ends within the kind
	apart := held.scope.permitted(k.Name).Apart(t.to.permitted(k.Name)).And(t.to.within())
	var more bool
	var edges []query.Edge
	if !apart.Empty() {
		step := query.Step{Kind: k, Scope: apart, From: t.after, Limit: snapshotStep}
		edges, more, err = c.read(ctx, step)
		if err != nil {
			return nil, err
		}
	}
	for i := range edges {
		r := &edges[i].Resource
		key := r.Stored.Key
		if !t.to.asks(key) {
			continue
		}
		if last && !t.to.before(key, held.kind, held.end) {
			more = false
			break
		}
		_, gone := t.gone[key]
		switch had, has := t.has(key), t.to.permits(key); {
		case had && !has:
			out = append(out, Change{Type: Deleted, Key: key, Cursor: c.cursor(t.at)})
		case has && !had && !gone:
			out = append(out, c.gained(r))
		}
	}
	switch {
	case more && len(edges) > 0:
		t.after = behind(edges)
	case last:
		t.after = held.end
	default:
		t.kind, t.after = t.kind+1, nil
	}
	return out, nil
}

// read reads a part of the view.
func (c *Stream) read(ctx context.Context, s query.Step) (edges []query.Edge, more bool, err error) {
	s.Filter, s.View = c.scope.filter[s.Kind.Name], c.transition.view
	if c.scope.namespace != nil {
		s.Namespace = *c.scope.namespace
	}
	edges, more, ok, err := c.feed.cfg.Reader.Step(ctx, s)
	if err == nil && !ok {
		err = rightsChangedError{} // the kind is not in memory
	}
	return edges, more, err
}

// gained returns the event for a resource that the caller may see from now on.
func (c *Stream) gained(r *query.Resource) Change {
	out := c.feed.change(Added, r)
	out.Cursor = c.cursor(c.transition.at)
	return out
}

// returnRegained returns the events for resources in gone that the new scope contains.
func (c *Stream) returnRegained(ctx context.Context) (out []Change, err error) {
	t := c.transition
	t.regained = []backend.Key{}
	for key := range t.gone {
		if !t.to.permits(key) {
			continue
		}
		edges, _, err := c.read(
			ctx, query.Step{Kind: t.to.kind(key.Kind), Scope: access.Within(key.Namespace, key.Name), Limit: 1},
		)
		if err != nil {
			return nil, err
		}
		for i := range edges {
			out, t.regained = append(out, c.gained(&edges[i].Resource)), append(t.regained, key)
		}
	}
	return out, nil
}

// finishTransition ends the transition. It returns the BOOKMARK and the events that follow the view.
func (c *Stream) finishTransition() []Change {
	at := c.transition.at
	c.transition, c.sendBookmark = nil, false
	out := []Change{{Type: Bookmark, Cursor: c.cursor(at), Number: c.number}}
	// If the watch has ended, the next poll returns its error. If the hub cannot narrow the watch to the scope now, the
	// stream itself skips changes that are not in the scope.
	if d, ok, err := c.watcher.Cover(c.scope.coverage(), func() {}); ok && err == nil {
		out = append(out, c.changes(&d)...)
	}
	return out
}

// unfinished takes the place of the stamp of rights in a cursor within a transition. It differs from every stamp.
const unfinished = "unfinished"

// rightsChangedError ends a stream that cannot continue because the rights of its caller have changed.
type rightsChangedError struct{}

func (rightsChangedError) Error() string { return "the caller's rights have changed since the cursor" }

// Is makes [errors.Is] report this error as a [backend.ErrPositionExpired], so that it is handled like an expired
// cursor.
func (rightsChangedError) Is(target error) bool { return target == backend.ErrPositionExpired }

// Detail returns the text that [failure.Of] adds to the caller's error.
func (rightsChangedError) Detail() string { return "what you may see has changed since" }
