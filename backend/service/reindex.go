package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// reindexPause is the pause between two looks for rows of other definitions.
	reindexPause = 2 * time.Second
	// reindexStep is how many resources one step of a rebuild reads.
	reindexStep = 256
)

// keepRows keeps the index rows of every kind of this gateway's definition,
// unless a newer gateway is at work (see [definition.claim]): it rebuilds what
// an older definition has made, and what an older gateway goes on writing. It
// returns when ctx ends or the store is closed; what fails is logged and tried again.
func (s *Service) keepRows(ctx context.Context) {
	first := true
	for {
		done, err := s.reindexKinds(ctx, first)
		switch {
		case ctx.Err() != nil || errors.Is(err, backend.ErrClosed):
			return
		case err != nil:
			s.cfg.Logger.Warn("reindexing failed and is tried again", zap.Error(err))
		}
		if first = first && !done; !wait.For(ctx, reindexPause) {
			return
		}
	}
}

// reindexKinds looks at all kinds and rebuilds what it finds. With retry it
// also tries anew what could not be read before. done says that it came to the end.
func (s *Service) reindexKinds(ctx context.Context, retry bool) (done bool, err error) {
	mine, err := s.claimKinds(ctx)
	if err != nil {
		return false, err
	}
	look := guards{kinds: mine}
	ranges := look.ranges()
	var pages []backend.Page
	for len(pages) < len(ranges) {
		part, err := backend.Ranges(ctx, s.cfg.Store, ranges[len(pages):min(len(pages)+backend.MaxRanges, len(ranges))])
		if err != nil {
			return false, err
		}
		pages = append(pages, part...)
	}
	stale := look.note(pages)
	for _, k := range mine {
		ranges := k.others()
		todo := ranges[:]
		if retry {
			todo = append(todo, k.unread())
		}
		if slices.Contains(stale, k) {
			s.cfg.Logger.Info("rebuilding index rows", zap.String("kind", k.Name), zap.String("fingerprint", k.fingerprint))
		}
		begin, n := s.cfg.Clock(), 0
		for _, r := range todo {
			some, err := s.rebuild(ctx, k, r)
			if n += some; err != nil {
				return false, err
			}
		}
		if n > 0 {
			k.stale.Store(false) // a hint: the next step that reads its rows asks anyway
			s.cfg.Logger.Info("index rows rebuilt", zap.String("kind", k.Name), zap.Int("resources", n), zap.Duration("took", s.cfg.Clock().Sub(begin)))
		}
	}
	return true, nil
}

// unread is the range of what this definition could not read.
func (k *kind) unread() backend.Range {
	own := backend.AppendString(nil, k.fingerprint+unreadableMark)
	return backend.Range{Kind: k.Name, Index: backend.DefinitionIndex, Start: own, End: backend.PrefixEnd(own)}
}

// rebuild reindexes the resources of a range, once each, and returns how many
// it did. It stops when a newer gateway takes over.
func (s *Service) rebuild(ctx context.Context, k *kind, r backend.Range) (n int, err error) {
	r.Limit = reindexStep
	for {
		page, err := s.cfg.Store.Range(ctx, r)
		if err != nil || len(page.Resources) == 0 {
			return n, err
		}
		last := page.Resources[len(page.Resources)-1]
		some, err := s.reindex(ctx, k, page.Resources)
		if n += some; err != nil {
			return n, err
		}
		if !page.More {
			return n, nil
		}
		r.Start = backend.Successor(append(backend.AppendString(nil, last.Fingerprint), backend.OrderTuple(last.Namespace, last.Name)...))
		s.cfg.Logger.Debug("rebuilding index rows", zap.String("kind", k.Name), zap.Int("resources", n))
		mine, err := s.claimKinds(ctx)
		if err != nil {
			return n, err
		}
		if !slices.Contains(mine, k) {
			return n, nil
		}
	}
}

// reindex derives rows and references of resources anew, in batches of one
// namespace each, and returns how many it did.
func (s *Service) reindex(ctx context.Context, k *kind, resources []*backend.Resource) (n int, err error) {
	var batch []backend.Action
	size := 0
	flush := func() error {
		some, err := s.applyEach(ctx, batch)
		n += some
		batch, size = nil, 0
		return err
	}
	for _, r := range resources {
		a := s.derive(k, r)
		if a.Put.Fingerprint == r.Fingerprint {
			continue // still unreadable
		}
		one := backend.Batch{Actions: []backend.Action{a}}
		if len(batch) == backend.MaxWrites || len(batch) > 0 && batch[0].Key.Namespace != a.Key.Namespace || size+one.Size() > backend.MaxBatchBytes {
			if err := flush(); err != nil {
				return n, err
			}
		}
		batch = append(batch, a)
		size += one.Size()
	}
	return n, flush()
}

// derive is the reindex of one resource. What is bound stays bound.
func (s *Service) derive(k *kind, r *backend.Resource) backend.Action {
	put := backend.Put{Fingerprint: k.fingerprint}
	if st, err := stateOf(r); err != nil {
		s.noteUnreadable(r, err)
		put.Fingerprint += unreadableMark
	} else {
		put.Rows, put.Refs = k.rows(st), k.refs(r.Namespace, st)
		if err := checkRows(r.Key, put.Rows); err != nil { // only under a definition that has more indexes than the one it was written under
			s.cfg.Logger.Warn("a stored resource is not found by all of its values", zap.Stringer("key", r.Key), zap.Error(err))
			put.Rows = put.Rows[:backend.MaxRows]
		}
	}
	for _, old := range r.Refs {
		i := slices.IndexFunc(put.Refs, func(ref backend.Ref) bool { return ref.Key == old.Key })
		switch {
		case old.Bound && i >= 0:
			put.Refs[i].Bound = true
		case old.Bound && len(put.Refs) < backend.MaxRefs:
			put.Refs = append(put.Refs, old)
		}
	}
	return backend.Action{Key: r.Key, If: backend.Condition{Revision: r.Revision}, Op: backend.OpReindex, Put: put}
}

// applyEach applies the actions but for those whose conditions fail, and
// returns how many they were: who has changed a resource meanwhile has made its
// rows, too, and if it was an older gateway the next look finds them.
func (s *Service) applyEach(ctx context.Context, actions []backend.Action) (int, error) {
	for len(actions) > 0 {
		_, err := s.applyAll(ctx, actions)
		var failed *backend.ConditionError
		if !errors.As(err, &failed) {
			if err != nil {
				return 0, err
			}
			return len(actions), nil
		}
		actions = slices.Delete(actions, failed.Action, failed.Action+1)
	}
	return 0, nil
}

// applyAll sends actions of no kind in particular. What becomes of them if the
// answer is lost is not asked: doing them again does no harm.
func (s *Service) applyAll(ctx context.Context, actions []backend.Action) (backend.Result, error) {
	return s.cfg.Store.Apply(ctx, backend.Batch{
		RequestID: s.cfg.NewID(),
		Deadline:  s.cfg.Clock().Add(s.cfg.WriteTimeout),
		Actions:   actions,
	})
}
