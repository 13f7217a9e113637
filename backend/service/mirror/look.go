package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// callTimeout bounds each call of a service. The time for which the service may wait for changes is added to it.
	// The protocols have shorter limits.
	callTimeout = 30 * time.Second
	// maxPuts is the maximum number of records that one look writes concurrently.
	maxPuts = 16
	// leastAdded and maxAdded bound the number of records that are added in one batch.
	leastAdded = 4
	maxAdded   = 50
	// maxAddedBytes is the approximate maximum size of a batch of added records.
	maxAddedBytes = 1 << 20
	// maxLooks is how often a look at one record is repeated while others keep changing the record.
	maxLooks = 16
	// maxLookPause is the longest pause before a look is repeated.
	maxLookPause = 200 * time.Millisecond
)

// get reads resources from the service as the gateway, not as the caller of ctx, because a mirror must not depend on
// the rights of a caller.
func (m *Mirror) get(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
	spent := budget.From(ctx)
	spent.BeginWait()
	defer spent.EndWait(ctx)
	asking, cancel := context.WithTimeout(access.WithoutCaller(ctx), callTimeout)
	defer cancel()
	got, err := m.service.Get(asking, keys)
	if err == nil && len(got) != len(keys) {
		err = fmt.Errorf("the service has answered %d of %d keys", len(got), len(keys))
	}
	return got, err
}

// lookQueued calls look for keys from the queue, and logs errors.
func (m *Mirror) lookQueued(ctx context.Context, keys []backend.Key) undone {
	l := looker{Mirror: m, sender: m.own}
	out, err := l.look(ctx, keys)
	if err != nil && ctx.Err() == nil {
		m.logOnce.Warn("mirroring resources of a service failed and is tried again", zap.Error(err))
	}
	return out
}

// look updates the records of at most [owner.MaxKeys] keys from the service. It returns the keys that must be looked at
// again.
func (l looker) look(ctx context.Context, keys []backend.Key) (out undone, err error) {
	records, err := l.read(ctx, keys)
	if err != nil {
		return undone{failed: keys}, err
	}
	got, err := l.get(ctx, keys)
	l.noteAnswer(ctx, otherCall, err)
	if err != nil {
		return undone{failed: keys}, err
	}
	errs := make([]error, len(keys))
	added := l.addAll(ctx, records, got)
	var g errgroup.Group
	g.SetLimit(maxPuts)
	for i, rec := range records {
		if added[i] {
			continue
		}
		g.Go(func() error {
			_, errs[i] = l.store(ctx, rec, got[i])
			return nil
		})
	}
	_ = g.Wait()
	for i, failed := range errs {
		switch {
		case failed == nil:
			l.noteReadable(keys[i])
		case isUnstorable(failed):
			l.noteUnreadable(keys[i], failed)
		case errors.Is(failed, errRaced):
			out.raced = append(out.raced, keys[i])
		default:
			out.failed = append(out.failed, keys[i])
			err = failed
		}
	}
	return out, err
}

// Refresh updates the record of a key from the service and returns it; nil if the service does not have the resource.
// The caller holds the lock of the key. edit describes the write that the service has just made for the caller of ctx;
// nil if there was none.
func (m *Mirror) Refresh(ctx context.Context, key backend.Key, edit *Edit) (*backend.Resource, error) {
	l := looker{Mirror: m, sender: m.cfg.Sender, locked: true, edit: edit}
	backoff := wait.Backoff{Least: minPause, Most: maxLookPause}
	for range maxLooks {
		records, err := m.read(ctx, []backend.Key{key})
		if err != nil {
			return nil, err
		}
		got, err := m.get(ctx, []backend.Key{key})
		if err != nil {
			return nil, m.unavailable(key, err)
		}
		stored, err := l.store(ctx, records[0], got[0])
		if !errors.Is(err, errRaced) {
			return stored, m.explained(key, err)
		}
		if !backoff.Wait(ctx) {
			break
		}
	}
	return nil, fmt.Errorf("%s: %w", key, backend.ErrConflict)
}

// noteUnreadable remembers and logs that a resource of the service cannot be mirrored. Its record stays as it is. If
// maxNoted resources are remembered already, noteUnreadable does nothing.
func (m *Mirror) noteUnreadable(key backend.Key, why error) {
	m.mu.Lock()
	_, known := m.unreadable[key]
	room := len(m.unreadable) < maxNoted
	if known || room {
		m.unreadable[key] = why.Error()
	}
	m.mu.Unlock()
	if !known && room {
		m.log.Warn("a resource of the service cannot be mirrored", zap.Stringer("key", key), zap.Error(why))
	}
}

// noteUnnameable logs, once for each kind, that resources have fields which the SDL does not have. The records keep
// these fields.
func (m *Mirror) noteUnnameable(k *kind.Kind, key backend.Key) {
	m.mu.Lock()
	known := m.unnameable[k.Name]
	m.unnameable[k.Name] = true
	m.mu.Unlock()
	if !known {
		m.log.Warn("resources of the service have fields that the SDL does not have: they are kept, and not shown",
			zap.String("kind", k.Name), zap.Stringer("for example", key))
	}
}

// noteReadable forgets that a resource could not be mirrored.
func (m *Mirror) noteReadable(key backend.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unreadable, key)
}
