package index

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// fillStep is how many resources are put into the trees at a time, while no change is.
const fillStep = 250

// fill reads a kind from the store. Its changes wait while a page is read and are
// made after it: a page that shows a change which the hub has not delivered is not
// undone by an older one, since revisions are compared. In the end the kind
// waits until the hub has delivered all that the pages can have shown.
//
// Of a kind that lacks keys these alone are read. It returns false if the store does not
// answer now.
func (x *Index) fill(ctx context.Context, s *shelf) bool {
	x.mu.Lock()
	lost := s.lost
	if s.state == lacks {
		x.bytes -= s.bytes
		for _, key := range lost {
			s.forget(key)
		}
		x.bytes += s.bytes
	} else {
		s.clear()
	}
	s.state = fills
	filling := s.fillings
	x.mu.Unlock()
	var err error
	if lost != nil {
		err = x.fillKeys(ctx, s, filling, lost)
	} else {
		err = x.fillPages(ctx, s, filling)
	}
	var head backend.Head
	if err == nil {
		head, err = backend.HeadOf(ctx, x.cfg.Store)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case s.fillings != filling: // it was cleared meanwhile
	case errors.Is(err, backend.ErrUnavailable):
		x.cfg.Logger.Debug("a kind cannot be filled now", zap.String("kind", s.Name), zap.Error(err))
		if s.state = waits; lost != nil {
			s.state = lacks
		}
		return false
	case err != nil:
		if ctx.Err() == nil {
			x.cfg.Logger.Warn("a kind cannot be filled; it is read from the store", zap.String("kind", s.Name), zap.Error(err))
		}
		x.giveUp(s)
	default:
		x.change(s, nil) // those that came since the last page
		if s.fillings == filling {
			s.state, s.since, s.lost = filled, head.Position, nil
		}
		x.publish()
	}
	return true
}

// fillPages reads the pages of a kind, as long as it is not cleared. What does not decode
// is there by its key, so that a single read says so.
func (x *Index) fillPages(ctx context.Context, s *shelf, filling int) error {
	r := backend.Range{Kind: s.Name, Limit: backend.MaxLimit}
	for {
		page, err := x.cfg.Store.Range(ctx, r)
		if err != nil {
			return err
		}
		made := make([]change, 0, len(page.Resources)+len(page.Unreadable))
		for _, stored := range page.Resources {
			made = append(made, change{key: stored.Key, revision: stored.Revision, entry: s.entry(stored)})
		}
		for _, key := range page.Unreadable {
			if key == (backend.Key{}) {
				x.cfg.Logger.Warn("a resource has no key that can be read", zap.String("kind", s.Name))
				continue
			}
			made = append(made, change{key: key, entry: s.damaged(key)})
		}
		for len(made) > 0 {
			n := min(len(made), fillStep)
			if !x.put(s, filling, made[:n]) {
				return nil
			}
			made = made[n:]
		}
		if !x.put(s, filling, nil) || !page.More || len(page.Resources) == 0 {
			return nil
		}
		last := page.Resources[len(page.Resources)-1]
		r.Start = backend.Successor(backend.OrderTuple(last.Namespace, last.Name))
	}
}

// fillKeys reads what the store has under keys.
func (x *Index) fillKeys(ctx context.Context, s *shelf, filling int, keys []backend.Key) error {
	for len(keys) > 0 {
		got, err := x.cfg.Store.Get(ctx, keys[:min(len(keys), fillStep)]...)
		if err != nil && !errors.Is(err, backend.ErrUnreadable) {
			return err
		}
		if err != nil { // of a single key
			got = []*backend.Resource{nil}
		}
		made := make([]change, 0, len(got))
		for i, stored := range got {
			damaged := err != nil
			if stored == nil && !damaged { // what does not decode is left out beside others
				if damaged, err = x.isDamaged(ctx, keys[i]); err != nil {
					return err
				}
			}
			switch {
			case damaged:
				made = append(made, change{key: keys[i], entry: s.damaged(keys[i])})
			case stored != nil:
				made = append(made, change{key: stored.Key, revision: stored.Revision, entry: s.entry(stored)})
			}
		}
		if len(made) > 0 && !x.put(s, filling, made) {
			return nil
		}
		keys = keys[len(got):]
	}
	return nil
}

// isDamaged reports whether what is stored under a key does not decode.
func (x *Index) isDamaged(ctx context.Context, key backend.Key) (bool, error) {
	_, err := x.cfg.Store.Get(ctx, key)
	if errors.Is(err, backend.ErrUnreadable) {
		return true, nil
	}
	return false, err
}

// put puts a part of a page into the trees, or after the last part the changes that
// have waited. It says whether the kind is still being filled.
func (x *Index) put(s *shelf, filling int, part []change) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.fillings != filling {
		return false
	}
	x.change(s, part)
	return s.fillings == filling
}

// change makes a part of a page's changes, or if there is none those that have waited.
// The caller holds mu.
func (x *Index) change(s *shelf, part []change) {
	x.bytes -= s.bytes
	x.version++
	for _, c := range part {
		s.apply(c, x.version)
	}
	if len(part) == 0 {
		s.takeWaiting(x.version)
	}
	x.bytes += s.bytes
	if x.fit() {
		x.publish() // what was given up is not served any more
	}
}
