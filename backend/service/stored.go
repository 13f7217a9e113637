package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// storedResource is a resource read from the store, with its sensitive values.
type storedResource struct {
	*backend.Resource
	// sensitive is the decrypted record of sensitive values; nil if there is none. unread is the reason why this record
	// could not be read.
	sensitive *backend.Resource
	unread    error
	// read caches the result of state.
	read *kind.State
}

// loader reads resources for writes and for reveal.
type loader struct {
	store      backend.Store
	keys       *keyring.Keyring
	index      *index.Index // nil if nothing is kept in memory
	unreadable *kind.Unreadable
}

// load reads a resource and then its sensitive values from the store; nil if there is no such resource. A write that
// depends on both must be conditional on the revision of the resource, which changes whenever either of them changes.
func (l *loader) load(ctx context.Context, k *kind.Kind, key backend.Key) (*storedResource, error) {
	var out *storedResource
	for range maxLoads {
		got, err := l.store.Get(ctx, key)
		if err != nil {
			return nil, failure.Of(err, key)
		}
		if got[0] == nil {
			return nil, nil
		}
		out = &storedResource{Resource: got[0]}
		if err := l.loadSensitive(ctx, k, out); err != nil || !out.mixed() {
			return out, err
		}
	}
	out.unread = fmt.Errorf("the sensitive values are those of another resource: %w", backend.ErrUnreadable)
	l.unreadable.Note(out.Resource, out.unread)
	return out, nil
}

// loadToWrite calls load and charges the budget of ctx for reading the resource and writing it back.
func (l *loader) loadToWrite(ctx context.Context, k *kind.Kind, key backend.Key) (*storedResource, error) {
	out, err := l.load(ctx, k, key)
	if err == nil {
		err = out.payToWrite(ctx)
	}
	return out, err
}

// payToWrite charges the budget of ctx for reading and writing r. If r is nil, it charges nothing.
func (r *storedResource) payToWrite(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return budget.From(ctx).Spend(budget.Steps, len(r.Body)/budget.RewrittenBytes)
}

// maxLoads is how often load tries to read a resource and the sensitive values that belong to it. Between the two reads
// the resource may be deleted and another one created under its name.
const maxLoads = 16

// mixed reports whether the sensitive values belong to another resource of the same name.
func (r *storedResource) mixed() bool { return r.sensitive != nil && r.sensitive.UID != r.UID }

// recent returns a resource from the index. It returns nil if the kind is sensitive or the index lacks the resource. It
// also returns nil if the stored references of the resource follow other declarations than the kind's, because the
// index does not keep such references. The resource may be outdated. A result based on it counts only after the success
// of a batch that is conditional on its revision.
func (l *loader) recent(k *kind.Kind, key backend.Key) *storedResource {
	if l.index == nil || k.Sensitive {
		return nil
	}
	r := l.index.Recent(key)
	if r == nil {
		return nil
	}
	st, err := kind.StateOf(r)
	if err != nil || r.Declared != k.Declared {
		return nil
	}
	return &storedResource{Resource: r, read: st}
}

// loadSensitive reads and decrypts the record of sensitive values, if the kind has such records.
func (l *loader) loadSensitive(ctx context.Context, k *kind.Kind, to *storedResource) error {
	if !k.Sensitive {
		return nil
	}
	got, err := l.store.Get(ctx, to.Key.Sensitive())
	switch {
	case errors.Is(err, backend.ErrUnreadable):
		to.unread = err
	case err != nil:
		return failure.Of(err, to.Key)
	case got[0] != nil:
		to.sensitive = got[0]
		if !to.mixed() {
			l.decrypt(to)
		}
	}
	return nil
}

func (l *loader) decrypt(to *storedResource) {
	plain := *to.sensitive
	plain.Body, to.unread = l.keys.Open(plain.Key, plain.UID, plain.Body)
	if to.unread != nil {
		l.unreadable.Note(to.Resource, to.unread)
		return
	}
	to.sensitive = &plain
}

// state returns the stored state. It decodes the state only once. Callers must not change it.
func (r *storedResource) state(k *kind.Kind) (*kind.State, error) {
	if r.read != nil {
		return r.read, nil
	}
	st, err := kind.StateOf(r.Resource)
	if err == nil {
		err = r.unread
	}
	if err == nil {
		err = st.Unseal(k, r.sensitive)
	}
	if err == nil {
		r.read = st
	}
	return st, err
}

// removalOfSensitive returns the action that deletes the record of sensitive values; nil if there is no record.
func (r *storedResource) removalOfSensitive() []backend.Action {
	if r.sensitive == nil && r.unread == nil {
		return nil
	}
	return []backend.Action{{
		Key: r.Key.Sensitive(),
		If:  backend.Condition{Presence: backend.Present},
		Op:  backend.OpDelete,
	}}
}
