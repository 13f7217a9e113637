package query

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Snapshot is the state of the store that the reads of one operation see, as far as
// the index in memory has it: the first of them takes it, for all. It is safe for
// concurrent use.
type Snapshot struct {
	mu    sync.Mutex // guards all below
	taken bool
	view  index.View
	// rights of the caller, nil until they are asked for.
	rights *access.Rights
	// reads records what is read; nil before [Snapshot.Record].
	reads *index.ReadSet
	// rightsKey is the key of the rights with which what is recorded was read; nil until they are asked for.
	rightsKey *string
}

type snapshotKey struct{}

// WithSnapshot returns a context whose reads see one state of the store, until it is
// forgotten. Without it each call of the reader takes a new state.
func WithSnapshot(ctx context.Context) (context.Context, *Snapshot) {
	m := &Snapshot{}
	return context.WithValue(ctx, snapshotKey{}, m), m
}

// Forget makes the next read take a newer state.
func (m *Snapshot) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = false
	m.view = index.View{}
	m.rights = nil
}

// Record begins to record what is read from now on, and by which rights. It drops what was recorded before.
func (m *Snapshot) Record() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = &index.ReadSet{}
	m.rightsKey = nil
	if m.taken {
		m.view = m.view.Recorded(m.reads)
	}
}

// Basis returns what the reads that were recorded depend on, by the rights with which they began; false if that is not
// known, because something was read outside the state or by other rights.
func (m *Snapshot) Basis() (b index.Basis, ok bool) {
	m.mu.Lock()
	reads := m.reads
	m.mu.Unlock()
	if reads == nil {
		return b, false
	}
	return reads.Basis()
}

// take makes a view the state that is read. The caller holds mu.
func (m *Snapshot) take(v index.View) {
	if m.reads != nil && v.Served() {
		v = v.Recorded(m.reads)
	}
	m.view = v
	m.taken = true
}

// ReadOutside records that something is read which is not in the state.
func (m *Snapshot) ReadOutside() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads.Incomplete()
}

// readOutside records that an operation reads something which is not in its state.
func readOutside(ctx context.Context) {
	if m, ok := ctx.Value(snapshotKey{}).(*Snapshot); ok {
		m.ReadOutside()
	}
}

// Basis is what the answer to an operation depends on: see [Snapshot.Basis].
type Basis = index.Basis

// Holds reports whether a basis holds in the state that an operation reads: what was computed from the basis is the
// same now.
func (r *Reader) Holds(ctx context.Context, b *Basis) bool {
	v := r.view(ctx)
	return b.Holds(&v)
}

// knownRights returns the rights that were kept, nil if there are none. m may be nil.
func (m *Snapshot) knownRights() *access.Rights {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rights
}

// keepRights keeps the rights of the operation's caller. m may be nil.
func (m *Snapshot) keepRights(rights *access.Rights) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rights = rights
	if m.reads == nil {
		return
	}
	key := rights.Key()
	if m.rightsKey != nil && *m.rightsKey != key { // the policy has changed meanwhile
		m.reads.Incomplete()
	}
	m.rightsKey = &key
}

// view is the state that a read sees. The zero value knows no kind.
func (r *Reader) view(ctx context.Context) (v index.View) {
	if r.index == nil {
		return index.View{}
	}
	m, ok := ctx.Value(snapshotKey{}).(*Snapshot)
	if !ok {
		v, _ = r.index.View(ctx)
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.taken {
		v, _ := r.index.View(ctx)
		m.take(v)
	}
	return m.view
}

// await is the state from which a kind is listed that the view before does not have: the first that
// has it and all that the store had acknowledged, if the kind is in memory or will be. Later
// reads of the operation see that state, too, by the rights of then. False: the kind is not in memory.
func (r *Reader) await(ctx context.Context, before index.View, k *kind.Kind) (v index.View, ok bool, err error) {
	if r.index == nil {
		return index.View{}, false, nil
	}
	v, ok, err = r.index.Await(ctx, before, k.Name)
	var filling *index.FillingError
	switch {
	case errors.As(err, &filling):
		return index.View{}, false, &failure.Error{
			Code:       failure.CodeUnavailable,
			Kind:       k.Name,
			Retryable:  true,
			RetryAfter: int(filling.RetryAfter.Seconds()),
			Message:    filling.Error() + "; try again",
		}
	case err != nil:
		return index.View{}, false, failure.Of(err, backend.Key{Kind: k.Name})
	}
	if m, has := ctx.Value(snapshotKey{}).(*Snapshot); has && ok {
		m.mu.Lock()
		m.take(v)
		v = m.view
		m.rights = nil
		m.mu.Unlock()
	}
	return v, ok, nil
}

// The cursor of a stream of changes is a position, and for callers who may not do everything the stamp of their rights:
//
//	AQEBKg.9ae16a3b
//
// Who resumes there knows the state at that position as far as the caller might see it. With other rights that is
// another state, and the stream does not go on from there.
const stampSeparator = "."

// ChangeCursor returns the cursor of a position for rights with a stamp; see [access.Rights.Stamp].
func ChangeCursor(at backend.Position, stamp string) string {
	if text := at.String(); stamp == "" || text == "" {
		return text
	}
	return at.String() + stampSeparator + stamp
}

// ParseChangeCursor reads what [ChangeCursor] wrote; anything else is [backend.ErrInvalid].
func ParseChangeCursor(cursor string) (at backend.Position, stamp string, err error) {
	text, stamp, stamped := strings.Cut(cursor, stampSeparator)
	if stamped && stamp == "" {
		return at, "", backend.ErrInvalid
	}
	at, err = backend.ParsePosition(text)
	return at, stamp, err
}
