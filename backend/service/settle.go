package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
// has changed: what they rely on and their conditions. It is right whoever else does
// the same at the same time.
func (s *Service) Settle(ctx context.Context, resources []*backend.Resource) error {
	if err := s.knowOwners(ctx); err != nil {
		return err
	}
	var todo []*settling
	for _, r := range resources {
		if one := s.settling(r); one != nil {
			todo = append(todo, one)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	var keys []backend.Key
	seen := map[backend.Key]bool{}
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
		return err
	}
	for len(todo) > 0 {
		var batch settleBatch
		if batch, todo, err = s.gather(todo, targets); err != nil {
			return err
		}
		if err := s.settleTogether(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// settling is a stored resource that is judged anew.
type settling struct {
	kind     *kind.Kind
	stored   *backend.Resource
	was      *kind.State
	relation dependency.Relation
}

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
	if slices.Equal(next.Meta.Waits, one.was.Meta.Waits) && next.Meta.Judged == one.was.Meta.Judged && st.SameStatus(one.was) {
		return nil, nil
	}
	t := target{
		kind: one.kind, key: one.stored.Key, uid: one.stored.UID, deleting: one.stored.Deleting, was: &replaced{one.stored, one.was}, own: true, kept: one.kind.Sensitive,
		cond: backend.Condition{Presence: backend.Present, Revision: one.stored.Revision}, related: dependency.Judgement{Refs: j.With(one.stored.Refs), Transition: true},
	}
	return s.actions(t, st)
}

// settleTogether stores a batch; if somebody else came in between, its resources one
// by one.
func (s *Service) settleTogether(ctx context.Context, b settleBatch) error {
	if len(b.of) == 0 {
		return nil
	}
	_, err := s.apply(ctx, b.actions...)
	if err == nil {
		return nil
	}
	var failed *backend.ConditionError
	if !errors.As(err, &failed) && !errors.Is(err, errLost) && !errors.Is(err, backend.ErrUnreadable) && !unstorable(err) {
		return err
	}
	for _, one := range b.of {
		if err := s.settleOne(ctx, one.stored.Key); err != nil {
			return err
		}
	}
	return nil
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
func (s *Service) settleOne(ctx context.Context, key backend.Key) error {
	err := s.settleStored(ctx, key)
	if unstorable(err) {
		s.passOver(key, err)
		return nil
	}
	return err
}

func (s *Service) settleStored(ctx context.Context, key backend.Key) error {
	for range maxSettleAttempts {
		got, err := s.cfg.Store.Get(ctx, key)
		switch {
		case errors.Is(err, backend.ErrUnreadable):
			return nil
		case err != nil:
			return err
		case got[0] == nil:
			return nil
		}
		one := s.settling(got[0])
		if one == nil {
			return nil
		}
		targets, err := s.targets(ctx, one.relation.Open(), oneByOne)
		if err != nil {
			return err
		}
		j := one.relation.Judge(targets)
		put, err := s.settled(one, j)
		if err != nil || put == nil {
			return err
		}
		_, err = s.apply(ctx, append(put, j.Checks...)...)
		var failed *backend.ConditionError
		if !errors.As(err, &failed) && !errors.Is(err, errLost) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", key, backend.ErrConflict)
}

// Conclude looks at resources that were created and wait for nothing: a gateway that did not
// know yet whether a controller owns their kind may have said otherwise.
func (s *Service) Conclude(ctx context.Context, created []*backend.Resource) error {
	if err := s.knowOwners(ctx); err != nil {
		return err
	}
	for _, r := range created {
		k, err := s.kinds.Find(r.Kind)
		if err != nil || k.Conditions == nil || r.Deleting {
			continue
		}
		st, err := kind.StateOf(r)
		if err != nil || len(st.Meta.Waits) > 0 {
			continue
		}
		if !s.owners.controlled(k.Name) {
			if err := s.Settle(ctx, []*backend.Resource{r}); err != nil {
				return err
			}
			continue
		}
		if _, said := dependency.Renumbered(st.StoredStatus(), st.Meta.Generation, st.Meta.Generation, true); !said {
			continue
		}
		status, _ := dependency.In(st.Status(), k.Conditions, dependency.Released(st.Meta.Generation), s.cfg.Clock())
		put, err := s.rewritten(k, r, st, st.WithStatus(status))
		if err == nil {
			_, err = s.apply(ctx, put...)
		}
		var failed *backend.ConditionError
		switch {
		case unstorable(err):
			s.passOver(r.Key, err)
		case err != nil && !errors.As(err, &failed): // else somebody has written since
			return err
		}
	}
	return nil
}

// Finish deletes a resource whose deletion waits, if nothing holds it any more. If
// finalizers alone do, its conditions say so, once. It is right whoever else does the
// same at the same time.
func (s *Service) Finish(ctx context.Context, key backend.Key) error {
	k, err := s.kinds.Find(key.Kind)
	if err != nil {
		return nil // this gateway does not know the kind; one that does finishes
	}
	for range maxSettleAttempts {
		condition := backend.Condition{Presence: backend.Present, Deleting: true, Unreferenced: true, Unfinalized: true}
		actions := []backend.Action{{Key: key, If: condition, Op: backend.OpDelete}}
		current, err := s.load(ctx, k, key)
		switch {
		case errors.Is(err, backend.ErrUnreadable):
			return nil
		case err != nil:
			return err
		case current == nil || !current.Deleting:
			return nil
		}
		actions[0].If.UID = current.UID
		actions = append(actions, current.removalOfSensitive()...)
		_, err = s.apply(ctx, actions...)
		switch {
		case errors.Is(err, backend.ErrFinalized):
			done, err := s.announce(ctx, k, current)
			if unstorable(err) {
				s.passOver(key, err)
				return nil
			}
			if done || err != nil {
				return err
			}
		case errors.Is(err, backend.ErrReferenced), errors.Is(err, backend.ErrNotFound), errors.Is(err, backend.ErrNotDeleting):
			return nil
		case errors.Is(err, errLost), raced(err, key):
		default:
			return err
		}
	}
	return fmt.Errorf("%s: %w", key, backend.ErrConflict)
}

// announce says in the conditions of a resource that finalizers alone hold it, unless
// they have said so.
func (s *Service) announce(ctx context.Context, k *kind.Kind, current *stored) (done bool, err error) {
	was, err := kind.StateOf(current.Resource)
	if err != nil || was.Meta.Finalizing {
		return true, nil
	}
	put, err := s.rewritten(k, current.Resource, was, s.finalizing(k, was))
	if err != nil {
		return true, err
	}
	put[0].If.Unreferenced = true
	_, err = s.apply(ctx, put...)
	switch {
	case errors.Is(err, errLost), raced(err, current.Key):
		return false, nil
	case errors.Is(err, backend.ErrNotFound), errors.Is(err, backend.ErrReferenced):
		return true, nil
	}
	return true, err
}

// Judgements names what resources are judged by: another name means that all are to be
// judged anew.
func (s *Service) Judgements() string {
	h := sha256.New()
	for _, k := range s.kinds.All() {
		_, _ = fmt.Fprintln(h, k.Name, k.Conditions != nil, s.owners.controlled(k.Name))
		for _, r := range k.References {
			_, _ = fmt.Fprintln(h, "-", r.Path, r.Kind, r.Guard)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// lookup says how targets are read.
type lookup uint8

const (
	// recently: from the index, which may be older than the store, and what it does not
	// have in one call. The store refuses a write that was misled.
	recently lookup = iota
	// together: from the store, in one call, in which what is damaged seems to be missing.
	together
	// oneByOne: from the store, one by one, so that what is damaged is told from what is missing.
	oneByOne
)
