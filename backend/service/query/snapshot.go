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

// Snapshot is the state from which an operation reads all kinds that are in memory. The first read takes the state. A
// Snapshot is safe for concurrent use.
type Snapshot struct {
	mu    sync.Mutex // guards all below
	taken bool
	view  index.View
	// rights are the rights of the caller; nil until they are loaded.
	rights *access.Rights
	// reads records what the operation reads; nil until [Snapshot.Record] is called.
	reads *index.ReadSet
	// rightsKey is the key of the rights with which the recorded reads were made; nil until the rights are loaded.
	rightsKey *string
}

type snapshotKey struct{}

// WithSnapshot returns a context in which all reads see the same state, until [Snapshot.Forget]. Without a snapshot,
// each call of a [Reader] sees the state at the time of the call.
func WithSnapshot(ctx context.Context) (context.Context, *Snapshot) {
	m := &Snapshot{}
	return context.WithValue(ctx, snapshotKey{}, m), m
}

// Forget makes the next read take a new state.
func (m *Snapshot) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = false
	m.view = index.View{}
	m.rights = nil
}

// Record begins to record what is read and with which rights. It drops earlier records.
func (m *Snapshot) Record() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = &index.ReadSet{}
	m.rightsKey = nil
	if m.taken {
		m.view = m.view.Recorded(m.reads)
	}
}

// Basis returns what the recorded reads depend on. ok is false if this is unknown, because something outside the state
// was read or the rights have changed meanwhile.
func (m *Snapshot) Basis() (b index.Basis, ok bool) {
	m.mu.Lock()
	reads := m.reads
	m.mu.Unlock()
	if reads == nil {
		return b, false
	}
	return reads.Basis()
}

// take sets the state that reads see. The caller holds mu.
func (m *Snapshot) take(v index.View) {
	if m.reads != nil && v.Served() {
		v = v.Recorded(m.reads)
	}
	m.view = v
	m.taken = true
}

// ReadOutside records that something outside the state was read.
func (m *Snapshot) ReadOutside() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads.Incomplete()
}

// readOutside calls ReadOutside for the snapshot of the operation, if it has one.
func readOutside(ctx context.Context) {
	if m, ok := ctx.Value(snapshotKey{}).(*Snapshot); ok {
		m.ReadOutside()
	}
}

// Basis is what the answer of an operation depends on. See [Snapshot.Basis].
type Basis = index.Basis

// IsValid reports whether a basis is unchanged in the state that an operation reads. Then an answer with this basis is
// still correct.
func (r *Reader) IsValid(ctx context.Context, b *Basis) bool {
	v := r.view(ctx)
	return b.ValidIn(&v)
}

// knownRights returns the rights set by keepRights; nil if there are none. m may be nil.
func (m *Snapshot) knownRights() *access.Rights {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rights
}

// keepRights sets the rights of the operation's caller. If they differ from the rights of recorded reads, the basis is
// lost. m may be nil.
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

// view returns the state of the index that a read sees. Without an index, the result is the zero View, which has no
// kinds.
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

// await waits until a kind is loaded into memory, if it is kept there, and returns the state. The state has everything
// that the store had acknowledged when await was called. Later reads of the operation see the same state, with the
// rights that follow from it. ok is false if the kind is not kept in memory.
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

// The cursor of a stream of changes is a log position. If the caller may not do everything, a stamp of the caller's
// rights follows:
//
//	AQEBKg.9ae16a3b
//
// A client that has a cursor has seen the state at its position, as far as its rights allowed. With other rights it
// would have seen another state. Therefore a stream cannot resume from a cursor with another stamp.
const stampSeparator = "."

// ChangeCursor returns the cursor of a log position. stamp is [access.Rights.Stamp] of the caller's rights.
func ChangeCursor(at backend.Position, stamp string) string {
	if text := at.String(); stamp == "" || text == "" {
		return text
	}
	return at.String() + stampSeparator + stamp
}

// ParseChangeCursor parses the result of [ChangeCursor]. For any other text the error is [backend.ErrInvalid].
func ParseChangeCursor(cursor string) (at backend.Position, stamp string, err error) {
	text, stamp, stamped := strings.Cut(cursor, stampSeparator)
	if stamped && stamp == "" {
		return at, "", backend.ErrInvalid
	}
	at, err = backend.ParsePosition(text)
	return at, stamp, err
}
