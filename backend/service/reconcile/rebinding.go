package reconcile

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/wait"
)

// When the store has accepted a new catalogue, the references of stored resources are derived again from its
// declarations, one kind after the other (scanKinds). Until a kind is done, the store guards targets by the earlier
// declarations.

// shardSet is a set of shards. It is safe for concurrent use. The zero value is empty.
type shardSet struct {
	mu     sync.Mutex // guards shards
	shards map[int]bool
}

func (s *shardSet) has(shard int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shards[shard]
}

// set adds a shard, or removes it.
func (s *shardSet) set(shard int, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shards == nil {
		s.shards = map[int]bool{}
	}
	s.shards[shard] = in
}

// rebindingPause is the pause between two checks whether a scan has ended.
const rebindingPause = 50 * time.Millisecond

// AwaitBindings waits until all kinds with guarded references to the kind of the resource are scanned. Then the store
// guards the resource by the newest declarations. It does not wait if the catalogue of this gateway is not the newest.
// If ctx ends first, it returns UNAVAILABLE.
func (r *Reconciler) AwaitBindings(ctx context.Context, key backend.Key) error {
	guarding := r.guarding(key.Kind)
	if len(guarding) == 0 {
		return nil
	}
	for {
		pending, err := r.pending(ctx, r.shardOf(key), guarding)
		if err != nil {
			return failure.Of(err, key)
		}
		if len(pending) == 0 {
			return nil
		}
		if !wait.For(ctx, rebindingPause) {
			out := failure.Of(backend.ErrUnavailable, key)
			out.Message = "a new catalogue has not yet taken over all references of kind " + pending[0].Name +
				", so it is not known what they guard; try again"
			return out
		}
	}
}

// Rebinding reports whether stored references of a kind must still be derived again from the declarations of this
// gateway.
func (r *Reconciler) Rebinding(ctx context.Context, k *kind.Kind) (bool, error) {
	if len(k.References) == 0 {
		return false, nil
	}
	at, err := r.cfg.Store.Position(ctx)
	if err != nil {
		return false, err
	}
	for shard := range at.Shards() {
		pending, err := r.pending(ctx, shard, []*kind.Kind{k})
		if err != nil || len(pending) > 0 {
			return len(pending) > 0, err
		}
	}
	return false, nil
}

// guarding returns the kinds that have guarded references to the kind with a name.
func (r *Reconciler) guarding(name string) (out []*kind.Kind) {
	for _, k := range r.cfg.Kinds.All() {
		for _, ref := range k.References {
			if ref.Guarded && ref.Kind == name {
				out = append(out, k)
				break
			}
		}
	}
	return out
}

// settleTime is how long the record of a shard may be wrong after a change of the newest catalogue: see
// [Reconciler.pending].
const settleTime = 5 * time.Second

// pending returns the kinds that must still be scanned in a shard. It returns none if this gateway's catalogue
// is not the newest. If a shard has no record, no kind was scanned. But if the store has accepted only one catalogue,
// no kind has to be scanned.
//
// Shortly after a change of the newest catalogue, the record may be wrong. It may list a kind as scanned although a
// gateway with the other catalogue has written resources since. This happens if catalogues follow each other faster
// than followers check the record. Therefore the kinds that the two catalogues declare differently are pending until
// this gateway's follower has checked the record.
func (r *Reconciler) pending(ctx context.Context, shard int, kinds []*kind.Kind) ([]*kind.Kind, error) {
	if r.scanned.has(shard) {
		return nil, nil
	}
	rec, current, err := r.read(ctx, shard)
	if err != nil {
		return nil, err
	}
	last, err := catalogue.LastSuccession(ctx, r.cfg.Store)
	if err != nil || last.Newest != r.hash || last.Before == "" && current.Presence != backend.Present {
		return nil, err
	}
	var before catalogue.Outline
	recent := last.Before != "" && r.cfg.Clock().Sub(last.At) < settleTime
	if recent {
		if before, err = catalogue.RecordedOutline(ctx, r.cfg.Store, last.Before); err != nil {
			return nil, err
		}
	}
	var out []*kind.Kind
	for _, k := range kinds {
		fingerprint, err := r.fingerprint(ctx, k)
		if err != nil {
			return nil, err
		}
		unseen := recent && !maps.EqualFunc(before.References(k.Name), r.outline.References(k.Name), sameReference)
		if unseen || rec.Scanned[k.Name] != fingerprint {
			out = append(out, k)
		}
	}
	return slices.Clip(out), nil
}

// sameReference reports whether two declared references have the same target and are both guarded or both unguarded.
func sameReference(a, b catalogue.FieldOutline) bool {
	return a.Refers == b.Refers && a.Guarded == b.Guarded
}
