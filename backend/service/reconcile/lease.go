package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// leaseFormat is the version of the stored record.
	leaseFormat = 1
	// leaseTime is how long a lease counts after it was renewed: the most that passes, with
	// acquirePause, until another gateway goes on with the shard of one that died.
	leaseTime = 10 * time.Second
	// renewPause is the pause between two renewals.
	renewPause = 3 * time.Second
	// acquirePause is the pause between two looks at a lease that another holds.
	acquirePause = time.Second
	// releaseTime is how long giving a lease back may take.
	releaseTime = time.Second
)

var (
	// errHeld: another gateway holds the lease.
	errHeld = errors.New("lease: held by another gateway")
	// errLeaseLost: another gateway has taken the lease.
	errLeaseLost = errors.New("lease: lost to another gateway")
)

// leaseRecord is the stored record.
type leaseRecord struct {
	Format int    `json:"format"`
	Holder string `json:"holder"`
	// Until is the instant, by the store's clock, up to which the lease counts.
	Until time.Time `json:"until"`
	// Epoch of the shard when the lease was taken. In another one it does not count: an
	// embedded store takes a new one whenever it is opened.
	Epoch uint64 `json:"epoch"`
	// Position up to which everything was judged; empty for nothing.
	Position string `json:"position,omitempty"`
	// Judgements by which it was.
	Judgements string `json:"judgements,omitempty"`
}

// lease of a shard, which this gateway holds.
type lease struct {
	shard int
	key   backend.Key

	mu       sync.Mutex // guards all below
	record   leaseRecord
	revision backend.Revision
}

// done notes up to where everything was judged, and by what.
func (l *lease) done(at backend.Position, judgements string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record.Position, l.record.Judgements = at.String(), judgements
}

// place is up to where everything was judged, and by what; zero for nothing.
func (l *lease) place() (backend.Position, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, err := backend.ParsePosition(l.record.Position)
	if err != nil {
		return backend.Position{}, ""
	}
	return at, l.record.Judgements
}

// acquire takes the lease of a shard; errHeld if another gateway holds it.
func (r *Reconciler) acquire(ctx context.Context, shard int) (*lease, error) {
	at, err := r.cfg.Store.Position(ctx)
	if err != nil {
		return nil, err
	}
	l := &lease{shard: shard, key: backend.Key{Kind: "_lease", Name: fmt.Sprintf("dependencies-%s-%d", r.catalogue, shard)}}
	got, err := r.cfg.Store.Get(ctx, l.key)
	if err != nil && !errors.Is(err, backend.ErrUnreadable) {
		return nil, err
	}
	condition := backend.Condition{Presence: backend.Absent}
	if err == nil && got[0] != nil {
		condition = backend.Condition{Presence: backend.Present, Revision: got[0].Revision}
		raw, err := backend.DecodeBody(got[0].Body)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &l.record); err != nil || l.record.Format != leaseFormat {
			return nil, fmt.Errorf("lease of shard %d in format %d, %d wanted: %w", shard, l.record.Format, leaseFormat, backend.ErrUnreadable)
		}
		if l.record.Holder != "" && l.record.Holder != r.holder && l.record.Epoch == at.Shard(shard).Epoch && l.record.Until.After(r.cfg.Clock()) {
			return nil, errHeld
		}
	}
	l.record.Format, l.record.Holder, l.record.Epoch = leaseFormat, r.holder, at.Shard(shard).Epoch
	if err := r.write(ctx, l, condition); err != nil {
		return nil, err
	}
	return l, nil
}

// renew keeps the lease until ctx ends or it is lost. While the store does not answer
// it goes on: another gateway cannot take it then either.
func (r *Reconciler) renew(ctx context.Context, l *lease) error {
	for wait.For(ctx, renewPause) {
		l.mu.Lock()
		revision := l.revision
		l.mu.Unlock()
		err := r.write(ctx, l, backend.Condition{Presence: backend.Present, Revision: revision})
		if errors.Is(err, errHeld) && !r.holds(ctx, l) {
			return errLeaseLost
		}
	}
	return ctx.Err()
}

// holds says whether a lease is this gateway's all the same: the answer to a renewal may
// have been lost.
func (r *Reconciler) holds(ctx context.Context, l *lease) bool {
	got, err := r.cfg.Store.Get(ctx, l.key)
	if err != nil || got[0] == nil {
		return false
	}
	raw, err := backend.DecodeBody(got[0].Body)
	var record leaseRecord
	if err != nil || json.Unmarshal(raw, &record) != nil || record.Holder != r.holder {
		return false
	}
	l.mu.Lock()
	l.revision = got[0].Revision
	l.mu.Unlock()
	return true
}

// release gives the lease back, so that another gateway need not wait for its end.
func (r *Reconciler) release(ctx context.Context, l *lease) {
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	l.mu.Lock()
	l.record.Holder = ""
	revision := l.revision
	l.mu.Unlock()
	_ = r.write(ctx, l, backend.Condition{Presence: backend.Present, Revision: revision}) // else it runs out
}

// write stores the record; errHeld if another gateway came in between.
func (r *Reconciler) write(ctx context.Context, l *lease, condition backend.Condition) error {
	l.mu.Lock()
	l.record.Until = r.cfg.Clock().Add(leaseTime).UTC().Truncate(time.Millisecond)
	raw, err := json.Marshal(l.record)
	l.mu.Unlock()
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	res, err := r.cfg.Store.Apply(ctx, backend.Batch{
		RequestID: r.cfg.NewID(), Deadline: r.cfg.Clock().Add(r.cfg.WriteTimeout),
		Actions: []backend.Action{{Key: l.key, If: condition, Op: backend.OpPut, Put: backend.Put{UID: r.cfg.NewID(), Body: backend.EncodeBody(raw)}}},
	})
	var failed *backend.ConditionError
	switch {
	case errors.As(err, &failed):
		return errHeld
	case err != nil:
		return err
	}
	l.mu.Lock()
	l.revision = res.Revisions[0]
	l.mu.Unlock()
	return nil
}
