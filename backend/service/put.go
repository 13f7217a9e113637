package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// stateWrite is the write of a state.
type stateWrite struct {
	reconcile.Write
	// caller marks a change of what callers set.
	caller bool
	// kept reports whether the record with the sensitive values stays, as the spec does.
	kept bool
	// related is the judgement of its references.
	related reconcile.Decision
}

// storeState stores a state with its consequences, or returns the resource that would be stored.
func (s *Service) storeState(ctx context.Context, w stateWrite, st *kind.State, dryRun bool) (*backend.Resource, error) {
	if w.caller {
		meta := st.Meta
		meta.UpdatedBy = access.CallerFrom(ctx).UpdatedBy()
		st = st.WithMetadata(meta)
	}
	actions, err := s.actions(&w, st)
	if err != nil {
		return nil, err
	}
	if dryRun {
		return s.wouldStore(&w, actions)
	}
	res, err := s.sender.Apply(ctx, actions...)
	if err != nil {
		return nil, err
	}
	return res.Resources[0], nil
}

// wouldStore returns what actions would store. A new resource has neither uid nor revision.
func (s *Service) wouldStore(w *stateWrite, actions []backend.Action) (*backend.Resource, error) {
	now := s.clock().UTC().Truncate(time.Millisecond)
	shards, _ := s.cfg.Store.(backend.Sharder)
	if err := (backend.Batch{RequestID: "dry run", Deadline: now, Actions: actions}).Validate(shards); err != nil {
		return nil, err
	}
	put := actions[0].Put
	out := &backend.Resource{Key: w.Key, Refs: put.Refs, Body: put.Body}
	out.CreatedAt, out.UpdatedAt, out.ExpiresAt = now, now, put.ExpiresAt
	out.Deleting, out.Finalizers = put.Deleting, *put.Finalizers
	if current := w.Stored; current != nil {
		out.UID, out.Revision, out.SpecRevision, out.CreatedAt = current.UID, current.Revision, current.SpecRevision, current.CreatedAt
	}
	return out, nil
}

// actions put a state. The sensitive values of a sensitive kind are a record of their own
// in the same batch, which the store gets encrypted.
func (s *Service) actions(w *stateWrite, st *kind.State) ([]backend.Action, error) {
	var sealed []byte
	seals := w.Kind.Sensitive && !w.kept
	if seals {
		var err error
		if st, sealed, err = st.Seal(w.Kind); err != nil {
			return nil, err
		}
	}
	var old *backend.Resource // if it can be read
	if w.Was != nil {
		old = w.Stored
	}
	put, err := st.Put(w.Kind, w.Key, old)
	if err != nil {
		return nil, err
	}
	put.Caller, put.Refs, put.Declared = w.caller, w.related.Refs, w.related.Declared
	condition := backend.Condition{Presence: backend.Absent}
	if w.Stored == nil {
		put.UID = s.cfg.NewID()
	} else {
		put.UID, put.Deleting = w.Stored.UID, w.Stored.Deleting
		if condition = (backend.Condition{Presence: backend.Present, Revision: w.Stored.Revision}); put.Declared != "" {
			condition.BindingVersion = w.Stored.BindingVersion
		}
	}
	actions := []backend.Action{{Key: w.Key, If: condition, Op: backend.OpPut, Put: put}}
	if seals {
		if sealed, err = s.cfg.Keys.Seal(w.Key.Sensitive(), put.UID, sealed); err != nil {
			return nil, err
		}
		actions = append(actions, backend.Action{
			Key: w.Key.Sensitive(), Op: backend.OpPut,
			Put: backend.Put{UID: put.UID, ExpiresAt: st.ExpiresAt, Body: sealed},
		})
	}
	// The gateway's own writes have the room up to backend.MaxStoredBytes: a resource as
	// large as callers can make it still gets its conditions, and can be deleted. So callers may shrink a
	// resource that is larger than they could make it.
	smaller := old != nil && !seals && len(put.Body) < len(old.Body)
	if size := (backend.Batch{Actions: actions}).Size(); !smaller && size > backend.MaxResourceBytes {
		return nil, fmt.Errorf("%s: %d bytes, at most %d: %w", w.Key, size, backend.MaxResourceBytes, backend.ErrTooLarge)
	}
	return append(actions, w.related.Checks...), nil
}

// stored is a resource as the store has it.
type stored struct {
	*backend.Resource
	// sensitive is the record with the sensitive values, decrypted, nil if there is
	// none, and unread why it could not be read.
	sensitive *backend.Resource
	unread    error
	// read is the result of state, once it was called.
	read *kind.State
	// concealed reports whether the state has none of the sensitive values, and kept whether the write leaves
	// these as they are stored.
	concealed, kept bool
	// used reports whether a write that is conditional on the resource was sent.
	used bool
}

// load reads what the store has of a resource, nil for nothing. The record with the
// sensitive values is read after the resource. A write that relies on both is
// conditional on the resource's revision, which changes with either.
func (s *Service) load(ctx context.Context, k *kind.Kind, key backend.Key) (*stored, error) {
	var out *stored
	for range maxLoads {
		got, err := s.cfg.Store.Get(ctx, key)
		if err != nil {
			return nil, failure.Of(err, key)
		}
		if got[0] == nil {
			return nil, nil
		}
		out = &stored{Resource: got[0]}
		if err := s.loadSensitive(ctx, k, out); err != nil || !out.mixed() {
			return out, err
		}
	}
	out.unread = fmt.Errorf("the sensitive values are those of another resource: %w", backend.ErrUnreadable)
	s.unreadable.Note(out.Resource, out.unread)
	return out, nil
}

// loadToWrite is load of what a write changes or replaces: reading and writing all of it
// has a price.
func (s *Service) loadToWrite(ctx context.Context, k *kind.Kind, key backend.Key) (*stored, error) {
	out, err := s.load(ctx, k, key)
	if err == nil {
		err = out.payToWrite(ctx)
	}
	return out, err
}

// payToWrite charges that a resource is read and written; nil for none.
func (r *stored) payToWrite(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return budget.From(ctx).Spend(budget.Steps, len(r.Body)/budget.RewrittenBytes)
}

// maxLoads is how often a resource and its sensitive values are read until they are of
// one resource: between the two, one can be deleted and another created under its name.
const maxLoads = 16

// mixed reports whether the sensitive values belong to another resource.
func (c *stored) mixed() bool { return c.sensitive != nil && c.sensitive.UID != c.UID }

// recent returns a resource from the index, nil if it is not there, or if its references were taken by other
// declarations, which the index does not have. It may be older than the stored one: a judgement by it holds
// only if a write that is conditional on its revision was applied.
func (s *Service) recent(k *kind.Kind, key backend.Key) *stored {
	if s.index == nil || k.Sensitive {
		return nil
	}
	r := s.index.Recent(key)
	if r == nil {
		return nil
	}
	st, err := kind.StateOf(r)
	if err != nil || r.Declared != k.Declared {
		return nil
	}
	return &stored{Resource: r, read: st}
}

// loadSensitive adds the record with the sensitive values, if the kind has them.
func (s *Service) loadSensitive(ctx context.Context, k *kind.Kind, to *stored) error {
	if !k.Sensitive {
		return nil
	}
	got, err := s.cfg.Store.Get(ctx, to.Key.Sensitive())
	switch {
	case errors.Is(err, backend.ErrUnreadable):
		to.unread = err
	case err != nil:
		return failure.Of(err, to.Key)
	case got[0] != nil:
		if to.sensitive = got[0]; !to.mixed() {
			s.open(to)
		}
	}
	return nil
}

// open decrypts the record with the sensitive values.
func (s *Service) open(to *stored) {
	plain := *to.sensitive
	if plain.Body, to.unread = s.cfg.Keys.Open(plain.Key, plain.UID, plain.Body); to.unread != nil {
		s.unreadable.Note(to.Resource, to.unread)
		return
	}
	to.sensitive = &plain
}

// state returns the stored state. It is read once, and must not be changed.
func (c *stored) state(k *kind.Kind) (*kind.State, error) {
	if c.read != nil {
		return c.read, nil
	}
	st, err := kind.StateOf(c.Resource)
	if err == nil {
		err = c.unread
	}
	if err == nil {
		err = st.Unseal(k, c.sensitive)
	}
	if err == nil {
		c.read = st
	}
	return st, err
}

// removalOfSensitive deletes the record with the sensitive values, if there is one.
func (c *stored) removalOfSensitive() []backend.Action {
	if c.sensitive == nil && c.unread == nil {
		return nil
	}
	return []backend.Action{{Key: c.Key.Sensitive(), If: backend.Condition{Presence: backend.Present}, Op: backend.OpDelete}}
}
