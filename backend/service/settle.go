package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// maxSettleAttempts bounds how often one resource is judged anew against other writers
// before that fails.
const maxSettleAttempts = 16

// Settle judges anew what stored resources of one namespace wait for, and stores what
// has changed: what they rely on and their conditions. It returns, as they are stored
// now, those that became ready by that. known are resources that the caller has just
// stored. It is right whoever else does the same at the same time.
func (s *Service) Settle(ctx context.Context, resources, known []*backend.Resource) (ready []*backend.Resource, err error) {
	if err := s.knowOwners(ctx); err != nil {
		return nil, err
	}
	todo, err := s.settlings(ctx, resources)
	if err != nil || len(todo) == 0 {
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
		var batch settleBatch
		if batch, todo, err = s.gather(todo, targets); err != nil {
			return ready, err
		}
		some, err := s.settleTogether(ctx, batch)
		ready = append(ready, some...)
		if err != nil {
			return ready, err
		}
	}
	return ready, nil
}

// settling is a stored resource that is judged anew.
type settling struct {
	kind     *kind.Kind
	stored   *backend.Resource
	was      *kind.State
	relation dependency.Relation
}

// settlings says what is to be judged anew of resources.
func (s *Service) settlings(ctx context.Context, resources []*backend.Resource) (out []*settling, err error) {
	others := false
	for _, r := range resources {
		if one := s.settling(r); one != nil {
			out = append(out, one)
			others = others || one.judgedByOthers()
		}
	}
	if !others {
		return out, nil
	}
	held, err := s.keeper.Look(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(out, func(one *settling) bool { return one.judgedByOthers() && !held[one.kind.Name] }), nil
}

// judgedByOthers says whether a resource was judged by other declarations than those of this
// gateway. If a newer gateway has made them the judgement is left to that.
func (one *settling) judgedByOthers() bool { return one.was.Meta.Judged != one.kind.Declared }

// settling says what is to be judged anew of a resource, nil if nothing is.
func (s *Service) settling(r *backend.Resource) *settling {
	k, err := s.kinds.Find(r.Kind)
	if err != nil || r.Deleting {
		return nil
	}
	st, err := kind.StateOf(r)
	if err != nil {
		s.unreadable.Note(r, err)
		return nil
	}
	refs := k.Rows.Refs(r.Namespace, st.Spec)
	one := &settling{kind: k, stored: r, was: st, relation: dependency.Of(r.Key, refs, dependency.Judged(k, r.Key, st, r.Refs))}
	if len(st.Meta.Waits) == 0 && st.Meta.Judged == k.Declared && !s.unconcluded(k, st) {
		return nil
	}
	return one
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
}

// gather makes the next batch of what is to be stored, and returns the rest. A batch
// has resources of one kind.
func (s *Service) gather(todo []*settling, targets map[backend.Key]dependency.Target) (b settleBatch, rest []*settling, err error) {
	puts, checks := map[backend.Key]bool{}, map[backend.Key]bool{}
	size := 0
	var checked []backend.Action
	for i, one := range todo {
		j := one.relation.Judge(targets)
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
		b.of, b.actions = append(b.of, one), append(b.actions, put...)
		puts[one.stored.Key] = true
		for _, c := range j.Checks {
			if !checks[c.Key] {
				checks[c.Key] = true
				checked = append(checked, c)
			}
		}
	}
	b.actions = append(b.actions, checked...)
	return b, rest, nil
}

// settled puts what a judgement changes of a resource; nothing if that is nothing.
func (s *Service) settled(one *settling, j dependency.Judgement) ([]backend.Action, error) {
	next := *one.was
	next.Meta.Waits, next.Meta.Judged = j.Stored(), one.kind.Declared
	st := &next
	if !slices.Equal(next.Meta.Waits, one.was.Meta.Waits) || len(j.Waits) > 0 || s.unconcluded(one.kind, one.was) {
		st, _ = s.conclude(relating{kind: one.kind, key: one.stored.Key, was: one.was}, st, j.Waits)
	}
	if slices.Equal(next.Meta.Waits, one.was.Meta.Waits) && st.SameStatus(one.was) && (!one.judgedByOthers() || j.BoundIn(one.stored.Refs)) {
		return nil, nil
	}
	t := target{
		kind: one.kind, key: one.stored.Key, uid: one.stored.UID, deleting: one.stored.Deleting, was: &replaced{one.stored, one.was}, own: true, kept: one.kind.Sensitive,
		cond: backend.Condition{Presence: backend.Present, Revision: one.stored.Revision}, related: dependency.Judgement{Refs: j.With(one.stored.Refs), Transition: true},
	}
	return s.actions(t, st)
}

// settleTogether stores a batch; if somebody else came in between, its resources one
// by one. It returns those that became ready.
func (s *Service) settleTogether(ctx context.Context, b settleBatch) (ready []*backend.Resource, err error) {
	if len(b.of) == 0 {
		return nil, nil
	}
	res, err := s.apply(ctx, b.actions...)
	if err == nil {
		return b.ready(res), nil
	}
	var failed *backend.ConditionError
	if !errors.As(err, &failed) && !errors.Is(err, errLost) && !errors.Is(err, backend.ErrUnreadable) && !unstorable(err) {
		return nil, err
	}
	for _, one := range b.of {
		some, err := s.settleOne(ctx, one.stored.Key)
		ready = append(ready, some...)
		if err != nil {
			return ready, err
		}
	}
	return ready, nil
}

// ready are the resources of a batch that became ready when it was stored.
func (b settleBatch) ready(res backend.Result) (out []*backend.Resource) {
	for _, one := range b.of {
		i := slices.IndexFunc(b.actions, func(a backend.Action) bool { return a.Op == backend.OpPut && a.Key == one.stored.Key })
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

// settleOne judges one resource anew, as it is stored now. What cannot be stored is passed over.
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
		todo, err := s.settlings(ctx, got)
		if err != nil || len(todo) == 0 {
			return nil, err
		}
		one := todo[0]
		targets, err := s.targets(ctx, one.relation.Open(), oneByOne)
		if err != nil {
			return nil, err
		}
		j := one.relation.Judge(targets)
		put, err := s.settled(one, j)
		if err != nil || put == nil {
			return nil, err
		}
		batch := settleBatch{actions: append(put, j.Checks...), of: []*settling{one}}
		res, err := s.apply(ctx, batch.actions...)
		if err == nil {
			return batch.ready(res), nil
		}
		var failed *backend.ConditionError
		if !errors.As(err, &failed) && !errors.Is(err, errLost) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: %w", key, backend.ErrConflict)
}
