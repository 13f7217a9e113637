package mirror

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// storeTime bounds the time for mirroring a write that a service has applied.
const storeTime = 30 * time.Second

// Answered is a write of a caller that a service has applied.
type Answered struct {
	Kind *kind.Kind
	Key  backend.Key
	// Stored is the record that was read before the service was called; nil if there was none. CalledAt is the time of
	// the call.
	Stored   *backend.Resource
	CalledAt time.Time
	// Write is the request. Resource is the resource after the write; nil if the service does not show it.
	Write    owner.Write
	Resource *owner.Resource
	// Edit is the part of the write that only the gateway stores.
	Edit Edit
}

// Store mirrors a write that a service has applied for the caller of ctx, and returns the record. The record may
// already have later changes by others. The caller holds the lock of the key. The write was applied, so Store mirrors
// it even if ctx has ended. An error has the outcome APPLIED.
func (m *Mirror) Store(ctx context.Context, w Answered) (*backend.Resource, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	edit := w.Edit
	edit.writeID = w.Write.Resource.WriteID
	stored, err := (*backend.Resource)(nil), errRaced
	if w.Resource != nil {
		edit.tag = w.Resource.Tag
		l := looker{Mirror: m, sender: m.cfg.Sender, locked: true, edit: &edit}
		stored, err = l.store(ctx, newRecord(w.Kind, w.Key, w.Stored, w.CalledAt), owner.Got{Resource: w.Resource})
	}
	if errors.Is(err, errRaced) {
		stored, err = m.Refresh(ctx, w.Key, &edit)
	}
	if err == nil && stored != nil {
		return stored, nil
	}
	m.looks.add(w.Key)
	return nil, m.applied(w.Key, err)
}

// applied returns the error for a change that the service has applied but the gateway could not mirror. err is the
// reason; nil if the resource was deleted after the change. The result does not wrap err: a caller that recognised err
// would repeat a write that was made.
func (m *Mirror) applied(key backend.Key, err error) error {
	e := &failure.Error{
		Code:    failure.CodeUnavailable,
		Outcome: failure.OutcomeApplied,
		Message: "the service " + m.name + " has made the change; it is not shown here yet",
	}
	switch {
	case err == nil:
		e.Code = failure.CodeNotFound
		e.Message = "the service " + m.name + " has made the change, and the resource was deleted since"
	case isUnstorable(err):
		m.noteUnreadable(key, err)
		e.Code = failure.CodeUnreadable
		e.Message = "the service " + m.name + " has made the change, and shows what cannot be stored here"
	default:
		m.logOnce.Warn("a change that a service has made could not be mirrored yet", zap.Error(err))
	}
	return e.At(key)
}

// Preview returns the actions that would mirror a write. Dry runs use it.
func (m *Mirror) Preview(ctx context.Context, w Answered) ([]backend.Action, error) {
	edit := w.Edit
	edit.writeID = w.Write.Resource.WriteID
	rec := newRecord(w.Kind, w.Key, w.Stored, w.CalledAt)
	n, err := m.replacement(ctx, rec, w.Resource, &edit, dependency.FromStore)
	if err != nil {
		return nil, m.explained(w.Key, err)
	}
	return m.actions(n)
}

// Deleted mirrors that a service has deleted a resource for the caller of ctx, or will delete it later. The caller
// holds the lock of the key. An error has the outcome APPLIED.
func (m *Mirror) Deleted(ctx context.Context, key backend.Key) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	_, err := m.Refresh(ctx, key, nil)
	if err == nil || isUnstorable(err) {
		return nil
	}
	m.looks.add(key)
	return m.applied(key, err)
}
