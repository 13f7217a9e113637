package service

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// All writes of callers reach the store through this file. Package mirror, package reconcile and reseal.go send the
// writes of the gateway itself. A write of a kind that a resource service owns goes to the service first: see owned.go.

// send sends a batch to the store and returns the resource of its first action. For a delete, this is the last state of
// the resource.
func (wr *Writer) send(ctx context.Context, actions ...backend.Action) (*backend.Resource, error) {
	res, err := wr.sender.Apply(ctx, actions...)
	if err != nil {
		return nil, err
	}
	return res.Resources[0], nil
}

// commit stores the next state of an attempt in one batch. In a dry run it returns the resource
// that would be stored.
func (a *attempt) commit(ctx context.Context) (*backend.Resource, error) {
	if a.changesCallersPart() {
		meta := a.next.Meta
		meta.UpdatedBy = access.CallerFrom(ctx).UpdatedBy()
		a.next = a.next.WithMetadata(meta)
	}
	if a.isOwned() && !a.managersOnly { // the service does not know of managers
		return a.commitOwned(ctx)
	}
	actions, err := a.actions()
	if err != nil {
		return nil, err
	}
	if a.dryRun {
		return a.wouldStore(actions)
	}
	return a.writer.send(ctx, actions...)
}

// actions returns the actions that store the next state. The first one puts it, on the condition
// that the stored resource has not changed. Sensitive values go into a separate, encrypted record.
func (a *attempt) actions() ([]backend.Action, error) {
	state := a.next
	seals := a.kind.Sensitive && !a.keepsSealed
	var values []byte
	if seals {
		var err error
		if state, values, err = a.next.Seal(a.kind.Whole()); err != nil {
			return nil, err
		}
	}
	put, err := a.put(state)
	if err != nil {
		return nil, err
	}
	actions := []backend.Action{put}
	if seals {
		sealed, err := a.writer.cfg.Keys.Seal(a.key.Sensitive(), put.Put.UID, values)
		if err != nil {
			return nil, err
		}
		actions = append(actions, backend.Action{
			Key: a.key.Sensitive(), Op: backend.OpPut,
			Put: backend.Put{UID: put.Put.UID, ExpiresAt: state.ExpiresAt, Body: sealed},
		})
	}
	// The store accepts up to backend.MaxStoredBytes, more than callers may use, so that the gateway can still add
	// conditions to the largest resource and request its deletion. A resource that is already too large may be made
	// smaller.
	old := a.readableCurrent()
	smaller := old != nil && !seals && len(put.Put.Body) < len(old.Body)
	if size := (backend.Batch{Actions: actions}).Size(); !smaller && size > backend.MaxResourceBytes {
		return nil, fmt.Errorf(
			"%s: %d bytes, at most %d: %w",
			a.key,
			size,
			backend.MaxResourceBytes,
			backend.ErrTooLarge,
		)
	}
	return append(actions, a.relation.Checks...), nil
}

func (a *attempt) put(state *kind.State) (backend.Action, error) {
	put, err := state.Put(a.kind.Whole(), a.key, a.readableCurrent(), a.names)
	if err != nil {
		return backend.Action{}, err
	}
	put.Caller = a.changesCallersPart()
	put.Refs = a.relation.Refs
	put.Declared = a.relation.Declared
	condition := backend.Condition{Presence: backend.Absent}
	if a.current == nil {
		put.UID = a.writer.cfg.NewID()
	} else {
		put.UID = a.current.UID
		put.Deleting = a.current.Deleting
		condition = backend.Condition{Presence: backend.Present, Revision: a.current.Revision}
		if put.Declared != "" {
			condition.BindingVersion = a.current.BindingVersion
		}
	}
	return backend.Action{Key: a.key, If: condition, Op: backend.OpPut, Put: put}, nil
}

// changesCallersPart reports whether the attempt changes what callers set. A status report does not do this, nor does
// an attempt that changes only field managers.
func (a *attempt) changesCallersPart() bool {
	return !a.isStatus() && !a.managersOnly
}

// readableCurrent returns the stored resource; nil if there is none or it cannot be read.
func (a *attempt) readableCurrent() *backend.Resource {
	if a.was == nil {
		return nil
	}
	return a.current.Resource
}

// wouldStore returns the resource that the actions would store. A new resource has neither a uid nor a revision.
func (a *attempt) wouldStore(actions []backend.Action) (*backend.Resource, error) {
	now := a.writer.clock().UTC().Truncate(time.Millisecond)
	shards, _ := a.writer.cfg.Store.(backend.Sharder)
	if err := (backend.Batch{RequestID: "dry run", Deadline: now, Actions: actions}).Validate(shards); err != nil {
		return nil, err
	}
	put := actions[0].Put
	out := &backend.Resource{Key: a.key, Refs: put.Refs, Body: put.Body}
	out.CreatedAt = now
	out.UpdatedAt = now
	out.ExpiresAt = put.ExpiresAt
	out.Deleting = put.Deleting
	out.Finalizers = *put.Finalizers
	if current := a.current; current != nil {
		out.UID = current.UID
		out.Revision = current.Revision
		out.SpecRevision = current.SpecRevision
		out.CreatedAt = current.CreatedAt
	}
	return out, nil
}
