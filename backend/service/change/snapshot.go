package change

import (
	"context"
	"errors"
	"maps"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

const (
	// snapshotStep is how many resources one step of a snapshot reads.
	snapshotStep = 200
	// snapshotRows is how many resources of a snapshot are charged to the budget as one row, because a stream may read
	// as many rows between two events as a query may read in total.
	snapshotRows = 10
	// maxResets is how often a snapshot may begin, including the first time. It begins again if the log does not reach
	// back to the beginning of a page, or if a shard has lost its position.
	maxResets = 3
)

// snapshot sends the resources that a scope covers, one page for each call of next. After each page it reads the log up
// to now. If a resource was already sent, its newer changes are sent. Changes of other resources are skipped, because
// their page is still to come. Therefore the log need only reach back to the beginning of the current page.
type snapshot struct {
	feed  *Feed
	scope scope
	// position is the log position up to which changes were read; zero before the first page.
	position backend.Position
	// kind is the index of the kind that is being read. after is the position within this kind.
	kind   int
	after  []byte
	resets int
	// sent is the part of the current page that another stream sent before this one took over; nil if there is none.
	sent *sentPage
	// late is set when a stream has joined that must get all changes up to now.
	late bool
}

// next returns the next events. It returns no events once all resources were sent.
func (n *snapshot) next(ctx context.Context) ([]Change, error) {
	if n.position.IsZero() {
		return n.restart(ctx)
	}
	for n.kind < len(n.scope.kinds) {
		page := n.page()
		out, err := n.readPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range out {
			page.revisions[out[i].Stored.Key] = out[i].Stored.Revision
		}
		changes, err := n.consume(ctx, &page)
		if err != nil {
			return nil, err
		}
		out = append(out, changes...)
		if len(out) > 0 {
			return out, nil
		}
	}
	if n.late || n.sent != nil {
		page := n.page()
		n.late = false
		return n.consume(ctx, &page)
	}
	return nil, nil
}

// page returns the part of the next page that was already sent.
func (n *snapshot) page() sentPage {
	page := sentPage{kind: n.kind, after: n.after, revisions: map[backend.Key]backend.Revision{}}
	if n.sent != nil {
		page.kind, page.after = n.sent.kind, n.sent.after
		maps.Copy(page.revisions, n.sent.revisions)
	}
	return page
}

// restart begins the snapshot, for the first time or again. After maxResets calls it returns
// [backend.ErrPositionExpired].
func (n *snapshot) restart(ctx context.Context) ([]Change, error) {
	if n.resets == maxResets {
		return nil, backend.ErrPositionExpired
	}
	at, err := n.feed.cfg.Store.Position(ctx)
	if err != nil {
		return nil, err
	}
	n.position = at
	n.kind = 0
	n.after = nil
	n.sent = nil
	n.resets++
	return []Change{{Type: Reset}}, nil
}

// readPage reads the next page of resources, from the index if possible.
func (n *snapshot) readPage(ctx context.Context) ([]Change, error) {
	k := n.scope.kinds[n.kind]
	if out, ok, err := n.readIndexed(ctx, k); ok || err != nil {
		return out, err
	}
	r := backend.Range{Kind: k.Name, Limit: snapshotStep, Start: n.after}
	if n.scope.namespace != nil {
		r.Namespace = *n.scope.namespace
	}
	spent := budget.From(ctx)
	if err := spent.Over(); err != nil {
		return nil, err
	}
	spent.BeginWait()
	page, err := n.feed.cfg.Store.Range(ctx, r)
	spent.EndWait(ctx)
	if err != nil {
		return nil, err
	}
	// Only a part of the rows is charged, so that a stream may read as many rows between two events as a query may
	// read.
	rows := len(page.Resources)
	if err := spent.Spend(budget.Rows, rows/snapshotRows); err != nil {
		return nil, err
	}
	var out []Change
	for _, stored := range page.Resources {
		if !n.scope.covers(stored.Key) {
			continue
		}
		b, err := k.Body.Read(stored)
		if err != nil {
			n.feed.cfg.Unreadable.Note(stored, err)
			continue
		}
		if f := n.scope.filter[k.Name]; !f.Empty() && !f.Match(filter.Of(k, b)) {
			continue
		}
		out = append(out, n.feed.change(Snapshot, &query.Resource{Stored: stored, Body: b}))
	}
	rest, more := r.After(page)
	n.advance(rest.Start, more)
	return out, nil
}

// advance moves to the position after a page, or to the next kind if the page was its last.
func (n *snapshot) advance(after []byte, more bool) {
	n.after = after
	if !more {
		n.kind, n.after = n.kind+1, nil
	}
}

// readIndexed reads a page from the index. ok is false if the index does not serve the kind.
func (n *snapshot) readIndexed(ctx context.Context, k *kind.Kind) (out []Change, ok bool, err error) {
	step := query.Step{
		Kind:   k,
		Filter: n.scope.filter[k.Name],
		Scope:  n.scope.allowed[k.Name],
		From:   n.after,
		Limit:  snapshotStep,
	}
	if n.scope.namespace != nil {
		step.Namespace = *n.scope.namespace
	}
	edges, more, ok, err := n.feed.cfg.Reader.Step(ctx, step)
	if !ok || err != nil {
		return nil, ok, err
	}
	for i := range edges {
		if r := &edges[i].Resource; n.scope.covers(r.Stored.Key) {
			out = append(out, n.feed.change(Snapshot, r))
		}
	}
	n.advance(behind(edges), more && len(edges) > 0)
	return out, true, nil
}

// behind returns the sort key that follows the last of the edges; nil if there are none.
func behind(edges []query.Edge) []byte {
	if len(edges) == 0 {
		return nil
	}
	last := edges[len(edges)-1].Resource.Stored
	return backend.Successor(backend.OrderTuple(last.Namespace, last.Name))
}

// sentPage is the part of a page that was sent. The page is read after the log position was taken, so it may already
// show changes that are read again from the log.
type sentPage struct {
	kind  int
	after []byte
	// revisions has the revision of each resource that was sent and not deleted afterwards.
	revisions map[backend.Key]backend.Revision
}

// isNewer reports whether a change must be sent after the page, and records it. A change need not be sent if the page
// shows the same or a later state, or if the change deletes a resource that the page does not have.
func (p *sentPage) isNewer(e *backend.Event, change Type) bool {
	key := e.Resource.Key
	sent, ok := p.revisions[key]
	switch {
	case ok && e.Revision.Compare(sent) <= 0, !ok && change == Deleted:
		return false
	case change == Deleted:
		delete(p.revisions, key)
	default:
		p.revisions[key] = e.Revision
	}
	return true
}

// consume reads the log up to now, and returns the changes to send after a page.
func (n *snapshot) consume(ctx context.Context, page *sentPage) (out []Change, err error) {
	for done := false; !done && err == nil; {
		done, err = n.consumeSome(ctx, page, &out)
		if errors.Is(err, backend.ErrLagged) {
			err = nil // the watch was already live when it fell behind; a new one reads the log from n.position
		}
	}
	if err == nil {
		n.sent = nil
	}
	return out, err
}

// consumeSome reads the log until it has caught up with the store, and appends the changes to send to out. If it
// returns an error, n.position is the position up to which it has read.
func (n *snapshot) consumeSome(ctx context.Context, page *sentPage, out *[]Change) (done bool, err error) {
	w, err := n.feed.follow(ctx, &n.scope, n.scope.covers, n.position)
	if err != nil {
		return false, err
	}
	defer w.Close()
	for {
		d, err := w.Next(ctx)
		if err != nil {
			return false, err
		}
		for i := range d.Events {
			e := &d.Events[i]
			change, ok := n.scope.change(e)
			if !ok || !n.scope.before(e.Resource.Key, n.kind, n.after) ||
				!n.scope.before(e.Resource.Key, page.kind, page.after) && !page.isNewer(e, change.Type) {
				continue
			}
			change.feed, change.position = n.feed, e.Position
			*out = append(*out, change)
		}
		n.position = d.Position
		if d.CaughtUp {
			return true, nil
		}
	}
}

// before reports whether key comes before a position in the order of a snapshot: by kind, then by namespace and name.
func (s *scope) before(key backend.Key, kind int, after []byte) bool {
	for i, k := range s.kinds {
		if k.Name == key.Kind {
			return i < kind || i == kind && string(backend.OrderTuple(key.Namespace, key.Name)) < string(after)
		}
	}
	return false
}
