package mirror

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/reconcile"
	"github.com/sluicegw/sluice/internal/wait"
)

// Deletion returns the request by which the service deletes the resource of a record. The UID prevents the deletion of
// another resource with the same name. The tag restricts the deletion to an unchanged resource. It is set if atRevision
// is true, or if the service has no UIDs.
func Deletion(k *kind.Kind, stored *backend.Resource, atRevision bool) owner.Delete {
	d := owner.Delete{Key: stored.Key}
	rec := newRecord(k, stored.Key, stored, time.Time{})
	if rec.was == nil || rec.was.Meta.Owner == nil {
		return d
	}
	of := rec.was.Meta.Owner
	if of.UID {
		d.IfUID = stored.UID
	}
	if !of.UID || atRevision {
		d.IfTag = of.Tag
	}
	return d
}

// removeQueued calls finish for each key of the queue.
func (m *Mirror) removeQueued(ctx context.Context, keys []backend.Key) (out undone) {
	for _, key := range keys {
		switch err := m.finish(ctx, key); {
		case err == nil:
		case errors.Is(err, errRaced):
			out.raced = append(out.raced, key)
		default:
			out.failed = append(out.failed, key)
			if ctx.Err() == nil {
				m.logOnce.Warn("asking a service to delete a resource failed and is tried again",
					zap.Stringer("key", key), zap.Error(err))
			}
		}
	}
	return out
}

// finish asks the service to delete a resource, if the deletion was requested here and no resource is bound to this
// one. It holds the lock of the key during the call. Otherwise a concurrent delete by a caller could get the answer
// that the resource is absent. It returns errRaced if a writer holds the lock.
func (m *Mirror) finish(ctx context.Context, key backend.Key) error {
	k := m.kind(key.Kind)
	if k == nil {
		return nil
	}
	if !m.cfg.Locks.TryLock(key) {
		return errRaced
	}
	defer m.cfg.Locks.Unlock(key)
	records, err := m.read(ctx, []backend.Key{key})
	if err != nil {
		return err
	}
	rec := records[0]
	if rec.stored == nil || !rec.stored.Deleting || rec.was == nil || rec.was.Meta.Finalizing {
		return nil // no deletion to send, or the service has it already
	}
	if of := rec.was.Meta.Owner; of != nil && of.Asking {
		return m.finishAsking(ctx, rec)
	}
	bound, err := m.cfg.Reconciler.IsBound(ctx, key)
	if err != nil || bound {
		return err // Remove is called again when the last binding is released
	}
	asking, cancel := context.WithTimeout(access.WithoutCaller(ctx), callTimeout)
	defer cancel()
	d := Deletion(k, rec.stored, false)
	d.ID = m.cfg.NewID()
	a, err := m.service.Delete(asking, d)
	m.noteAnswer(ctx, otherCall, err)
	switch {
	case errors.Is(err, owner.ErrUnimplemented):
		a.Message = "it takes no deletes"
	case err != nil:
		return err
	}
	switch a.Outcome {
	case owner.Done, owner.Waits, owner.Absent, owner.Conflict:
		_, err := m.Refresh(ctx, key, nil)
		if isUnstorable(err) {
			return nil
		}
		return err
	}
	m.log.Warn("the service has refused a deletion that had waited: it is taken back",
		zap.Stringer("key", key), zap.Stringer("outcome", a.Outcome), zap.String("message", shortened(a.Message)))
	return m.TakeBack(ctx, k, rec.stored)
}

const (
	// AskLimit is the time after the request of a deletion within which the gateway that received the request may still
	// send it to the service.
	AskLimit = 30 * time.Second
	// askTime is the age of such a request from which other gateways remove it from the record. By then the gateway
	// that received the request has removed it itself or has stopped.
	askTime = AskLimit + 10*time.Second
)

// finishAsking removes the request of a deletion from a record if the gateway that received it should have completed it
// by now. That gateway has stopped or got no answer. The caller was not promised that the resource would be deleted.
func (m *Mirror) finishAsking(ctx context.Context, rec record) error {
	if m.cfg.Sender.Clock().Sub(rec.was.Meta.DeletionRequestedAt) < askTime {
		return nil // pending deletions are checked again from time to time
	}
	stored, err := m.Refresh(ctx, rec.key, nil)
	if err != nil || stored == nil || stored.Revision != rec.stored.Revision {
		return err
	}
	m.log.Info("a deletion of which it is not known what the service said is taken back", zap.Stringer("key", rec.key))
	return m.TakeBack(ctx, rec.kind, stored)
}

// TakeBack removes the request of a deletion from a record. The caller holds the lock of the key. If the record has
// changed, TakeBack tries again with the new record, provided that the record still has the same request and a gateway
// is still sending it for its caller. Other requested deletions stay and are sent to the service again.
func (m *Mirror) TakeBack(ctx context.Context, k *kind.Kind, stored *backend.Resource) error {
	backoff := wait.Backoff{Least: minPause, Most: maxLookPause}
	rec := newRecord(k, stored.Key, stored, time.Time{})
	for range maxLooks {
		err := m.takeBack(ctx, rec)
		if !errors.Is(err, errRaced) {
			return err
		}
		if !backoff.Wait(ctx) {
			return ctx.Err()
		}
		again, err := m.read(ctx, []backend.Key{stored.Key})
		if err != nil {
			return err
		}
		if !isSameRequest(rec, again[0]) {
			return nil
		}
		rec = again[0]
	}
	return nil // finishAsking takes it back
}

// isSameRequest reports whether the newer record has the same request of a deletion as the older one, and a gateway is
// still sending it for its caller.
func isSameRequest(was, now record) bool {
	if was.was == nil || now.was == nil || !now.stored.Deleting {
		return false
	}
	of := now.was.Meta.Owner
	return of != nil && of.Asking && now.was.Meta.DeletionRequestedAt.Equal(was.was.Meta.DeletionRequestedAt)
}

// takeBack tries TakeBack once. It returns errRaced if the record has changed since it was read.
func (m *Mirror) takeBack(ctx context.Context, rec record) error {
	was, err := kind.StateOf(rec.stored)
	if err != nil {
		return err
	}
	state := was.WithMetadata(was.Meta)
	state.Meta.DeletionRequestedAt = time.Time{}
	if of := state.Meta.Owner; of != nil {
		state.Meta.Owner = &body.Owner{Tag: of.Tag, UID: of.UID}
	}
	put, err := reconcile.Rewrite(rec.kind, rec.stored, state)
	if err != nil {
		return err
	}
	put.Put.Deleting = false
	_, err = m.cfg.Sender.Apply(ctx, put)
	return failed(err)
}
