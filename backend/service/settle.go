package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// maxSettleAttempts bounds how often one resource is judged anew against other writers
// before that fails.
const maxSettleAttempts = 16

// Settle re-evaluates what stored resources of one namespace wait for, and stores what
// has changed: what they rely on and their conditions. It returns, as they are stored
// now, those that became ready by that. known are resources that the caller has just
// stored. It is right whoever else does the same at the same time.
func (s *Service) Settle(ctx context.Context, resources, known []*backend.Resource) (ready []*backend.Resource, err error) {
	if err := s.knowOwners(ctx); err != nil {
		return nil, err
	}
	todo, deadline, err := s.settlings(ctx, resources)
	left := errors.Is(err, reconcile.ErrNotNewest)
	if err != nil && !left || len(todo) == 0 {
		return nil, err
	}
	var keys []backend.Key
	seen := make(map[backend.Key]bool, len(known))
	for _, r := range known {
		seen[r.Key] = true
	}
	for _, one := range todo {
		for _, key := range one.relation.Open() {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	targets, err := s.targets(ctx, keys, together)
	if err != nil {
		return nil, err
	}
	for _, r := range known {
		k, err := s.kinds.Find(r.Kind)
		if err != nil {
			return nil, err
		}
		targets[r.Key] = dependency.Target{Kind: k, Stored: r, Recent: true}
	}
	for len(todo) > 0 {
		batch := settleBatch{deadline: deadline}
		if todo, err = s.gather(&batch, todo, targets); err != nil {
			return ready, err
		}
		some, err := s.settleTogether(ctx, batch)
		ready = append(ready, some...)
		if left = left || errors.Is(err, reconcile.ErrNotNewest); err != nil && !errors.Is(err, reconcile.ErrNotNewest) {
			return ready, err
		}
	}
	if left {
		return ready, reconcile.ErrNotNewest
	}
	return ready, nil
}

// settling is a stored resource that is re-evaluated.
type settling struct {
	kind     *kind.Kind
	stored   *backend.Resource
	was      *kind.State
	relation dependency.Relation
}

// foreign reports whether the references of a resource were taken by declarations that
// differ from this gateway's.
func (one *settling) foreign() bool { return one.stored.Declared != one.kind.Declared }

// settlings returns the resources that need re-evaluation, and the deadline of what is
// stored of them; zero means the usual deadline. References that were taken by other
// declarations are left to a gateway whose catalogue is the newest: with
// [reconcile.ErrNotNewest] some were.
func (s *Service) settlings(ctx context.Context, resources []*backend.Resource) (out []*settling, deadline time.Time, err error) {
	foreign := false
	for _, r := range resources {
		if one := s.settling(r); one != nil {
			out = append(out, one)
			foreign = foreign || one.foreign()
		}
	}
	if !foreign {
		return out, time.Time{}, nil
	}
	deadline = s.cfg.Clock().Add(min(rebindTime, s.cfg.WriteTimeout))
	newest, err := s.Newest(ctx)
	if err != nil {
		return nil, deadline, err
	}
	if !newest || !s.reconciler.Rebinds(resources[0].Namespace) {
		out = slices.DeleteFunc(out, func(one *settling) bool { return one.foreign() })
		return out, time.Time{}, reconcile.ErrNotNewest
	}
	return out, deadline, nil
}

// settling returns what is to be re-evaluated of a resource, nil for nothing.
func (s *Service) settling(r *backend.Resource) *settling {
	k, err := s.kinds.Find(r.Kind)
	if err != nil || r.Deleting && r.Declared == k.Declared {
		return nil
	}
	st, err := kind.StateOf(r)
	if err != nil {
		s.unreadable.Note(r, err)
		return nil
	}
	if len(st.Meta.Waits) == 0 && r.Declared == k.Declared && !s.unconcluded(k, st) {
		return nil
	}
	refs := k.Rows.Refs(r.Namespace, st.Spec)
	return &settling{kind: k, stored: r, was: st, relation: dependency.Of(r.Key, refs, dependency.Known(k, r, st))}
}

// unconcluded says whether nobody has said yet that a resource which waits for nothing is
// ready, though no controller is to say so.
func (s *Service) unconcluded(k *kind.Kind, st *kind.State) bool {
	return k.Conditions != nil && !s.owners.controlled(k.Name) && !dependency.Concluded(st.Status())
}

// settleBatch are actions of one batch, and the resources that they are about.
type settleBatch struct {
	actions []backend.Action
	of      []*settling
	// deadline of the batch; zero means the usual one.
	deadline time.Time
	// released are the resources that others are bound to no more.
	released []backend.Key
}

// gather fills a batch with what is to be stored, and returns the rest. A batch
// has resources of one kind.
func (s *Service) gather(b *settleBatch, todo []*settling, targets map[backend.Key]dependency.Target) (rest []*settling, err error) {
	puts, checks := map[backend.Key]bool{}, map[backend.Key]bool{}
	size := 0
	var checked []backend.Action
	for i, one := range todo {
		j := one.judge(targets)
		fresh := 0
		for _, c := range j.Checks {
			if !checks[c.Key] {
				fresh++
			}
		}
		conflict := checks[one.stored.Key] || slices.ContainsFunc(j.Checks, func(c backend.Action) bool { return puts[c.Key] })
		if len(b.of) > 0 && (one.kind != b.of[0].kind || conflict || len(b.of) == backend.MaxWrites || len(checks)+fresh > backend.MaxChecks || size > backend.MaxResourceBytes) {
			rest = append(rest, todo[i])
			continue
		}
		put, err := s.settled(one, j)
		if err != nil {
			s.passOver(one.stored.Key, err)
			continue
		}
		if put == nil {
			continue
		}
		size += (backend.Batch{Actions: put}).Size()
		b.add(one, put)
		puts[one.stored.Key] = true
		for _, c := range j.Checks {
			if !checks[c.Key] {
				checks[c.Key] = true
				checked = append(checked, c)
			}
		}
	}
	b.actions = append(b.actions, checked...)
	return rest, nil
}

// add adds what is stored of a resource.
func (b *settleBatch) add(one *settling, put []backend.Action) {
	b.of, b.actions = append(b.of, one), append(b.actions, put...)
	if put[0].Op != backend.OpRebind && put[0].Put.Declared == "" {
		return // the references stay
	}
	for _, ref := range one.stored.Refs {
		if ref.Bound && !slices.Contains(put[0].Put.Refs, ref) && !slices.Contains(b.released, ref.Key) {
			b.released = append(b.released, ref.Key)
		}
	}
}

// judge judges a resource by what it refers to. One that is being deleted relies on nothing
// new, and waits for nothing.
func (one *settling) judge(targets map[backend.Key]dependency.Target) dependency.Judgement {
	if one.stored.Deleting {
		return dependency.Judgement{Refs: one.relation.Kept().Refs}
	}
	return one.relation.Judge(targets)
}

// settled returns what a judgement changes of a resource; nothing if that is nothing. If
// nothing changes but the references it is a rebind.
func (s *Service) settled(one *settling, j dependency.Judgement) ([]backend.Action, error) {
	next := *one.was
	st := &next
	if !one.stored.Deleting {
		next.Meta.Waits = j.Stored()
		if !slices.Equal(next.Meta.Waits, one.was.Meta.Waits) || len(j.Waits) > 0 || s.unconcluded(one.kind, one.was) {
			st = s.conclude(relating{kind: one.kind, key: one.stored.Key, was: one.was}, st, j.Waits)
		}
	}
	if slices.Equal(next.Meta.Waits, one.was.Meta.Waits) && st.SameStatus(one.was) {
		if !one.foreign() {
			return nil, nil
		}
		return []backend.Action{{
			Key: one.stored.Key, Op: backend.OpRebind, If: backend.Condition{Revision: one.stored.Revision, Passes: one.stored.Passes},
			Put: backend.Put{Refs: j.Refs, Declared: one.kind.Declared},
		}}, nil
	}
	t := target{
		kind: one.kind, key: one.stored.Key, uid: one.stored.UID, passes: one.stored.Passes, deleting: one.stored.Deleting, was: &replaced{one.stored, one.was},
		own: true, kept: one.kind.Sensitive, cond: backend.Condition{Presence: backend.Present, Revision: one.stored.Revision},
		related: dependency.Judgement{Refs: j.Refs, Declared: one.kind.Declared},
	}
	return s.actions(t, st)
}

// settleTogether stores a batch; if somebody else came in between, its resources one
// by one. It returns those that became ready.
func (s *Service) settleTogether(ctx context.Context, b settleBatch) (ready []*backend.Resource, err error) {
	if len(b.of) == 0 {
		return nil, nil
	}
	ready, err = s.storeBatch(ctx, b)
	var failed *backend.ConditionError
	if err == nil || !errors.As(err, &failed) && !errors.Is(err, errLost) && !errors.Is(err, backend.ErrUnreadable) && !unstorable(err) {
		return ready, err
	}
	err = nil
	for _, one := range b.of {
		some, failed := s.settleOne(ctx, one.stored.Key)
		ready = append(ready, some...)
		if err = cmp.Or(err, failed); failed != nil && !errors.Is(failed, reconcile.ErrNotNewest) {
			return ready, failed
		}
	}
	return ready, err
}

// storeBatch stores a batch, finishes the deletions that waited for what it releases, and
// returns the resources that became ready.
func (s *Service) storeBatch(ctx context.Context, b settleBatch) (ready []*backend.Resource, err error) {
	if b.deadline.IsZero() {
		b.deadline = s.cfg.Clock().Add(s.cfg.WriteTimeout)
	}
	res, err := s.applyBy(ctx, b.deadline, b.actions...)
	if err != nil {
		return nil, err
	}
	for _, key := range b.released {
		if err := s.Finish(ctx, key); err != nil {
			return nil, err
		}
	}
	return b.ready(res), nil
}

// ready are the resources of a batch that became ready when it was stored.
func (b settleBatch) ready(res backend.Result) (out []*backend.Resource) {
	for _, one := range b.of {
		i := slices.IndexFunc(b.actions, func(a backend.Action) bool { return a.Op != backend.OpCheck && a.Key == one.stored.Key })
		if dependency.Ready(one.kind, res.Resources[i]) && !dependency.Ready(one.kind, one.stored) {
			out = append(out, res.Resources[i])
		}
	}
	return out
}

// unstorable says whether an error is about what is to be stored of one resource, so that
// trying again is of no use.
func unstorable(err error) bool {
	var known *failure.Error
	return errors.Is(err, backend.ErrTooLarge) || errors.Is(err, backend.ErrInvalid) || errors.As(err, &known) && !known.Retryable
}

// passOver notes that the conditions of a resource cannot be stored. Others do not wait for it.
func (s *Service) passOver(key backend.Key, err error) {
	s.cfg.Logger.Error("what a resource waits for cannot be stored", zap.Stringer("key", key), zap.Error(err))
}

// settleOne re-evaluates one resource, as it is stored now. What cannot be stored is passed over.
// It returns it if it became ready.
func (s *Service) settleOne(ctx context.Context, key backend.Key) (ready []*backend.Resource, err error) {
	ready, err = s.settleStored(ctx, key)
	if unstorable(err) {
		s.passOver(key, err)
		return nil, nil
	}
	return ready, err
}

func (s *Service) settleStored(ctx context.Context, key backend.Key) (ready []*backend.Resource, err error) {
	for range maxSettleAttempts {
		got, err := s.cfg.Store.Get(ctx, key)
		switch {
		case errors.Is(err, backend.ErrUnreadable):
			return nil, nil
		case err != nil:
			return nil, err
		case got[0] == nil:
			return nil, nil
		}
		todo, deadline, err := s.settlings(ctx, got)
		if err != nil || len(todo) == 0 {
			return nil, err
		}
		one := todo[0]
		targets, err := s.targets(ctx, one.relation.Open(), oneByOne)
		if err != nil {
			return nil, err
		}
		j := one.judge(targets)
		put, err := s.settled(one, j)
		if err != nil || put == nil {
			return nil, err
		}
		batch := settleBatch{deadline: deadline}
		batch.add(one, put)
		batch.actions = append(batch.actions, j.Checks...)
		ready, err = s.storeBatch(ctx, batch)
		var failed *backend.ConditionError
		if err == nil || !errors.As(err, &failed) && !errors.Is(err, errLost) {
			return ready, err
		}
	}
	return nil, fmt.Errorf("%s: %w", key, backend.ErrConflict)
}
