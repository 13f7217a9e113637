package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/reconcile"
	"github.com/sluicegw/sluice/backend/service/sender"
)

// record is the record of a resource that a service owns, as it was read from the store.
type record struct {
	kind *kind.Kind
	key  backend.Key
	// stored is nil if there is no record, or if the record is damaged.
	stored *backend.Resource
	// was is the state of stored. It is nil if stored is nil or its body cannot be read.
	was *kind.State
	// damaged reports whether the record cannot be decoded.
	damaged bool
	// begin is a time at which the read had not begun yet.
	begin time.Time
}

// newRecord returns the record of a stored resource, which may be nil.
func newRecord(k *kind.Kind, key backend.Key, stored *backend.Resource, begin time.Time) record {
	out := record{kind: k, key: key, stored: stored, begin: begin}
	if stored != nil {
		if was, err := kind.StateOf(stored); err == nil {
			out.was = was
		}
	}
	return out
}

// Edit is the part of a caller's write that only the gateway stores and not the service.
type Edit struct {
	// Managers are the field managers after the write.
	Managers []body.Manager
	// writeID and tag identify the version of the resource that the write has made. Either may be empty.
	writeID, tag string
}

// made reports whether the write has made the version r of the resource. A nil e has made none.
func (e *Edit) made(r *owner.Resource) bool {
	return e != nil && (e.tag != "" && e.tag == r.Tag || e.writeID != "" && e.writeID == r.WriteID)
}

// next is the state that replaces a record.
type next struct {
	record
	state    *kind.State
	relation dependency.Decision
	deleting bool
	// callers reports whether anything that callers set differs from the record.
	callers bool
	// same reports whether the record already has this state.
	same bool
	// createdAt is the creation time of the resource; zero means now.
	createdAt time.Time
	uid       string
}

// replacement returns the state that replaces a record. The record must not be damaged, and must not belong to an
// earlier resource of the same name. edit describes the write that has made this version; nil if no caller of this
// gateway has made it.
func (m *Mirror) replacement(
	ctx context.Context, rec record, r *owner.Resource, edit *Edit, read dependency.Reading,
) (*next, error) {
	spec, err := m.specOf(rec, r)
	if err != nil {
		return nil, err
	}
	out := &next{record: rec, uid: r.UID, state: &kind.State{Spec: spec}}
	if y := r.CreatedAt.UTC().Year(); !r.CreatedAt.IsZero() && y >= 1970 && y <= 9999 {
		out.createdAt = r.CreatedAt.UTC().Truncate(time.Millisecond)
	}
	respecified := true
	if rec.was != nil {
		out.state = rec.was.WithMetadata(rec.was.Meta)
		respecified = !rec.kind.Spec.Identical(spec, rec.was.Spec)
		if respecified {
			out.state = out.state.WithSpec(spec)
		}
	}
	out.takeMetadata(r, respecified)
	if !rec.kind.Spec.CanName(spec) {
		m.noteUnnameable(rec.kind, rec.key)
	}
	out.callers = respecified || !out.state.SameBesides(rec.was)
	if err := out.takeStatus(r, m.isPartial(rec.kind)); err != nil {
		return nil, err
	}
	if edit.made(r) {
		out.state.Meta.Managers = edit.Managers
	}
	if out.callers || edit.made(r) {
		out.callers = true
		out.state.Meta.UpdatedBy = m.updatedBy(ctx, edit.made(r))
	}
	out.same = out.isStored(respecified)
	if out.same {
		return out, nil
	}
	if respecified {
		out.state, out.relation, err = m.cfg.Reconciler.Relate(ctx, reconcile.Replacement{
			Kind: rec.kind, Key: rec.key, Stored: rec.stored, Was: rec.was, SpecChanged: true, Read: read,
		}, out.state)
	}
	return out, err
}

// updatedBy returns the name to store as metadata.updatedBy: the caller of ctx if callers is set, otherwise the
// service.
func (m *Mirror) updatedBy(ctx context.Context, callers bool) string {
	if !callers {
		ctx = m.identity(ctx)
	}
	return access.CallerFrom(ctx).UpdatedBy()
}

// specOf returns the spec of a resource with stored names. It keeps fields of the resource that the SDL does not have,
// unless the kind has write-only fields. It drops write-only fields, which services do not show. If the service shows
// only a part of each resource, specOf also keeps fields of the record that the SDL does not have. Another gateway,
// whose SDL has these fields, mirrors them.
func (m *Mirror) specOf(rec record, r *owner.Resource) (map[string]any, error) {
	k := rec.kind
	spec := map[string]any{}
	if len(bytes.TrimSpace(r.Spec)) > 0 {
		var err error
		if spec, err = jsontree.Parse(string(r.Spec)); err != nil {
			return nil, fmt.Errorf("spec: %w: %w", errUnstorable, err)
		}
	}
	jsontree.DropNulls(spec)
	k.Spec.Canonical(spec)
	if k.Spec.Hides {
		spec = k.Spec.Shown(spec)
	}
	if rec.was != nil && m.isPartial(k) {
		k.Spec.KeepUnknown(spec, rec.was.Spec)
	}
	return spec, nil
}

// takeStatus copies the status of the resource. If the service shows only a part of each resource, takeStatus keeps
// fields of the record's status that the SDL does not have.
func (n *next) takeStatus(r *owner.Resource, partial bool) error {
	keeps := partial && n.was != nil
	if keeps && n.kind.Status == nil && len(r.Status) == 0 {
		return nil
	}
	var status map[string]any
	if len(bytes.TrimSpace(r.Status)) > 0 {
		var err error
		if status, err = jsontree.Parse(string(r.Status)); err != nil {
			return fmt.Errorf("status: %w: %w", errUnstorable, err)
		}
		jsontree.DropNulls(status)
	}
	if keeps && status != nil && n.kind.Status != nil {
		n.kind.Status.KeepUnknown(status, n.was.Status())
	}
	if now := n.state.WithStatus(status); n.was == nil || !now.SameStatus(n.was) {
		n.state = now
	}
	return nil
}

// takeMetadata copies the metadata of the resource. It keeps a deletion that was requested here even if the service
// does not know of it.
func (n *next) takeMetadata(r *owner.Resource, respecified bool) {
	meta := &n.state.Meta
	meta.Labels = r.Labels
	meta.Annotations = r.Annotations
	meta.Description = r.Description
	was := meta.Owner
	meta.Owner = &body.Owner{Tag: r.Tag, UID: r.UID != ""}
	switch {
	case r.Generation > 0:
		meta.Generation = r.Generation
	case n.was == nil:
		meta.Generation = 1
	case respecified && !n.kind.Spec.Equivalent(n.state.Spec, n.was.Spec):
		meta.Generation++
	}
	if n.stored != nil {
		n.deleting = n.stored.Deleting
	}
	switch {
	case !r.DeletionRequestedAt.IsZero():
		n.deleting = true
		meta.DeletionRequestedAt = r.DeletionRequestedAt.UTC().Truncate(time.Millisecond)
		meta.Finalizing = true
	case meta.Finalizing: // the service has taken the deletion back
		n.deleting = false
		meta.DeletionRequestedAt = time.Time{}
		meta.Finalizing = false
	default:
		meta.Owner.Asking = was != nil && was.Asking
	}
}

// isStored reports whether the record already has this state.
func (n *next) isStored(respecified bool) bool {
	if n.was == nil || respecified || n.deleting != n.stored.Deleting || !n.state.SameBesides(n.was) {
		return false
	}
	now, was := n.state.Meta, n.was.Meta
	return was.Owner != nil && *now.Owner == *was.Owner && now.Generation == was.Generation &&
		now.UpdatedBy == was.UpdatedBy && now.Finalizing == was.Finalizing &&
		now.DeletionRequestedAt.Equal(was.DeletionRequestedAt)
}

// actions returns the actions that store the state if the record has not changed.
func (m *Mirror) actions(n *next) ([]backend.Action, error) {
	readable := n.stored
	if n.was == nil {
		readable = nil
	}
	put, err := n.state.Put(n.kind, n.key, readable, failure.StoredNames)
	if err != nil {
		return nil, err
	}
	put.Caller = n.callers
	put.Deleting = n.deleting
	put.Refs = n.relation.Refs
	put.Declared = n.relation.Declared
	condition := backend.Condition{Presence: backend.Absent}
	if n.stored != nil {
		put.UID = n.stored.UID
		condition = backend.Condition{Presence: backend.Present, Revision: n.stored.Revision}
		if put.Declared != "" {
			condition.BindingVersion = n.stored.BindingVersion
		}
	} else {
		put.UID = n.uid
		if put.UID == "" {
			put.UID = m.cfg.NewID()
		}
		if !n.createdAt.IsZero() {
			put.CreatedAt = n.createdAt
			put.UpdatedAt = m.cfg.Sender.Clock().UTC().Truncate(time.Millisecond)
		}
	}
	action := backend.Action{Key: n.key, If: condition, Op: backend.OpPut, Put: put}
	return append([]backend.Action{action}, n.relation.Checks...), nil
}

// errRaced means that the record has changed since it was read, or that a writer holds the lock of its key.
var errRaced = errors.New("the record has changed")

// errUnstorable means that the service shows a resource which the kind does not allow.
var errUnstorable = errors.New("it is not what the kind can have")

// isUnstorable reports whether an error is caused by the resource itself. Then a retry would fail too.
func isUnstorable(err error) bool {
	known, ok := errors.AsType[*failure.Error](err)
	return errors.Is(err, errUnstorable) || errors.Is(err, backend.ErrTooLarge) || errors.Is(err, backend.ErrInvalid) ||
		ok && !known.Retryable
}

// failed returns errRaced for the error of a batch whose condition was not met or whose answer was lost. It returns
// other errors unchanged.
func failed(err error) error {
	var refused *backend.ConditionError
	if errors.As(err, &refused) || errors.Is(err, sender.ErrLost) {
		return errRaced
	}
	return err
}

// looker updates records from the service.
type looker struct {
	*Mirror
	sender *sender.Sender
	// locked reports whether the caller holds the locks of the keys.
	locked bool
	// edit describes the write that the service has made for the caller of the context; nil if there was none.
	edit *Edit
}

// store updates a record from the answer that the service gave after the record was read. It returns errRaced if the
// record has changed since it was read, or if a writer of this gateway holds the lock of the key.
func (l looker) store(ctx context.Context, rec record, got owner.Got) (*backend.Resource, error) {
	switch r := got.Resource; {
	case got.Unreadable != "":
		return nil, fmt.Errorf("%w: the service cannot show it: %s", errUnstorable, failure.Shorten(got.Unreadable))
	case rec.damaged, r == nil && rec.stored != nil:
		return nil, l.remove(ctx, rec)
	case r == nil:
		return nil, nil
	case r.Key != rec.key:
		return nil, fmt.Errorf("%w: the service shows %s instead", errUnstorable, r.Key)
	case rec.stored != nil && r.UID != "" && r.UID != rec.stored.UID: // another resource under the name
		if err := l.remove(ctx, rec); err != nil {
			return nil, err
		}
		rec = newRecord(rec.kind, rec.key, nil, time.Time{})
	case rec.stored == nil && l.deleted.since(rec.key, rec.begin):
		return nil, errRaced
	}
	for read := dependency.FromStore; ; read++ {
		out, err := l.put(ctx, rec, got.Resource, read)
		if read < dependency.OneByOne && errors.Is(err, backend.ErrUnreadable) { // a target does not decode
			continue
		}
		return out, err
	}
}

// put stores the state of the resource r in place of a record. If the record already has this state, put writes
// nothing.
func (l looker) put(
	ctx context.Context, rec record, r *owner.Resource, read dependency.Reading,
) (*backend.Resource, error) {
	n, err := l.replacement(ctx, rec, r, l.edit, read)
	if err != nil {
		return nil, err
	}
	if n.same {
		return rec.stored, nil
	}
	actions, err := l.actions(n)
	if err != nil {
		return nil, err
	}
	if !l.edit.made(r) {
		ctx = l.identity(ctx)
	}
	res, err := l.apply(ctx, actions...)
	if err != nil {
		return nil, err
	}
	return res.Resources[0], nil
}

// remove deletes a record. If the record was damaged, remove returns errRaced, so that the next look writes it again.
func (l looker) remove(ctx context.Context, rec record) error {
	action := backend.Action{Key: rec.key, Op: backend.OpDelete, If: backend.Condition{Presence: backend.Present}}
	if !rec.damaged {
		action.If.Revision = rec.stored.Revision
	}
	if _, err := l.apply(l.identity(ctx), action); err != nil {
		return err
	}
	l.deleted.note(rec.key)
	if rec.damaged {
		return errRaced
	}
	return nil
}

// apply sends a batch about one key while it holds the lock of the key.
func (l looker) apply(ctx context.Context, actions ...backend.Action) (backend.Result, error) {
	if !l.locked {
		key := actions[0].Key
		if !l.cfg.Locks.TryLock(key) { // the writer that holds the lock also updates the record
			return backend.Result{}, errRaced
		}
		defer l.cfg.Locks.Unlock(key)
	}
	res, err := l.sender.Apply(ctx, actions...)
	return res, failed(err)
}

// read reads the records of keys, in their order.
func (m *Mirror) read(ctx context.Context, keys []backend.Key) ([]record, error) {
	begin := time.Now()
	out := make([]record, 0, len(keys))
	for len(out) < len(keys) {
		rest := keys[len(out):]
		got, err := m.own.Store.Get(ctx, rest[:min(len(rest), backend.MaxKeys)]...)
		if errors.Is(err, backend.ErrUnreadable) {
			got, err = m.own.Store.Get(ctx, rest[0])
			if errors.Is(err, backend.ErrUnreadable) {
				out = append(out, record{kind: m.kind(rest[0].Kind), key: rest[0], damaged: true, begin: begin})
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		for i, stored := range got {
			out = append(out, newRecord(m.kind(rest[i].Kind), rest[i], stored, begin))
		}
	}
	return out, nil
}

// isListed reports whether a record equals the listed resource. If it does not, look compares the two again.
func (m *Mirror) isListed(ctx context.Context, rec record, r *owner.Resource) bool {
	if rec.stored == nil || rec.was == nil || r.UID != "" && r.UID != rec.stored.UID {
		return false
	}
	spec, err := m.specOf(rec, r)
	if err != nil || !rec.kind.Spec.Identical(spec, rec.was.Spec) {
		return false // known without reading the targets of references
	}
	n, err := m.replacement(ctx, rec, r, nil, dependency.FromStore)
	return err == nil && n.same
}
