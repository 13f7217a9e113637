package reindex

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/row"
	"github.com/sluicegw/sluice/internal/loglimit"
	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// reindexPause is the pause between two looks for rows of other definitions.
	reindexPause = 2 * time.Second
	// reindexStep is how many resources one step of a rebuild reads.
	reindexStep = 256
)

// unreadableMark follows the fingerprint of a resource whose body could not be
// read when it was to be reindexed: it has no rows and matches nothing, as in a
// scan, and does not keep all others from being found by theirs.
const unreadableMark = "!"

// Run keeps the index rows of every kind of this gateway's definition,
// unless a newer gateway is at work (see [definition.claim]): it rebuilds what
// an older definition has made, and what an older gateway goes on writing. It
// returns nil when ctx ends or the store is closed; what fails is logged and tried again.
func (p *Keeper) Run(ctx context.Context) error {
	logger, first := loglimit.Once(p.cfg.Logger), true
	for {
		done, err := p.reindexKinds(ctx, first)
		switch {
		case ctx.Err() != nil || errors.Is(err, backend.ErrClosed):
			return nil
		case err != nil:
			logger.Warn("reindexing failed and is tried again", zap.Error(err))
		}
		if first = first && !done; !wait.For(ctx, reindexPause) {
			return nil
		}
	}
}

// reindexKinds looks at all kinds and rebuilds what it finds. With retry it
// also tries anew what could not be read before. done says that it came to the end.
func (p *Keeper) reindexKinds(ctx context.Context, retry bool) (done bool, err error) {
	mine, err := p.claim(ctx)
	if err != nil {
		return false, err
	}
	var look row.Guards
	for _, k := range mine {
		look.Add(k.Rows, true)
	}
	ranges := look.Ranges()
	var pages []backend.Page
	for len(pages) < len(ranges) {
		part, err := backend.Ranges(ctx, p.cfg.Store, ranges[len(pages):min(len(pages)+backend.MaxRanges, len(ranges))])
		if err != nil {
			return false, err
		}
		pages = append(pages, part...)
	}
	stale := look.Note(pages)
	for _, k := range mine {
		ranges := k.Rows.Others()
		todo := ranges[:]
		if retry {
			todo = append(todo, unread(k))
		}
		if slices.Contains(stale, k.Rows) {
			p.cfg.Logger.Info("rebuilding index rows", zap.String("kind", k.Name), zap.String("fingerprint", k.Rows.Fingerprint))
		}
		begin, n := p.cfg.Clock(), 0
		for _, r := range todo {
			some, err := p.rebuild(ctx, k, r)
			if n += some; err != nil {
				return false, err
			}
		}
		if n > 0 {
			k.Rows.Stale.Store(false) // a hint: the next step that reads its rows asks anyway
			p.cfg.Logger.Info("index rows rebuilt", zap.String("kind", k.Name), zap.Int("resources", n), zap.Duration("took", p.cfg.Clock().Sub(begin)))
		}
	}
	return true, nil
}

// unread is the range of what this definition could not read.
func unread(k *kind.Kind) backend.Range {
	own := backend.AppendString(nil, k.Rows.Fingerprint+unreadableMark)
	return backend.Range{Kind: k.Name, Index: backend.DefinitionIndex, Start: own, End: backend.PrefixEnd(own)}
}

// rebuild reindexes the resources of a range, once each, and returns how many
// it did. It stops when a newer gateway takes over.
func (p *Keeper) rebuild(ctx context.Context, k *kind.Kind, r backend.Range) (n int, err error) {
	r.Limit = reindexStep
	for {
		page, err := p.cfg.Store.Range(ctx, r)
		if err != nil || len(page.Resources) == 0 {
			return n, err
		}
		last := page.Resources[len(page.Resources)-1]
		some, err := p.reindex(ctx, k, page.Resources)
		if n += some; err != nil {
			return n, err
		}
		if !page.More {
			return n, nil
		}
		r.Start = backend.Successor(append(backend.AppendString(nil, last.Fingerprint), backend.OrderTuple(last.Namespace, last.Name)...))
		p.cfg.Logger.Debug("rebuilding index rows", zap.String("kind", k.Name), zap.Int("resources", n))
		mine, err := p.claim(ctx)
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
func (p *Keeper) reindex(ctx context.Context, k *kind.Kind, resources []*backend.Resource) (n int, err error) {
	var batch []backend.Action
	var waiting []*backend.Resource
	var released []backend.Key
	size := 0
	flush := func() error {
		err := p.judge(ctx, waiting, nil) // before, too: nobody finds them again if this gateway ends in between
		if err != nil {
			return err
		}
		some, err := p.applyEach(ctx, batch)
		if n += some; err == nil {
			err = p.judge(ctx, waiting, released)
		}
		batch, waiting, released, size = nil, nil, nil, 0
		return err
	}
	for _, r := range resources {
		a, waits := p.derive(k, r)
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
		if waits {
			waiting = append(waiting, r)
		}
		for _, ref := range r.Refs {
			if ref.Bound && !slices.Contains(a.Put.Refs, ref) && !slices.Contains(released, ref.Key) {
				released = append(released, ref.Key)
			}
		}
	}
	return n, flush()
}

// judge has resources of one namespace judged anew that wait, and finishes deletions that
// waited for what was released, until that succeeds: they are not found here again.
func (p *Keeper) judge(ctx context.Context, waiting []*backend.Resource, released []backend.Key) error {
	for {
		err := p.tryJudge(ctx, waiting, released)
		if err == nil || errors.Is(err, backend.ErrClosed) {
			return err
		}
		p.cfg.Logger.Warn("judging resources whose rows were rebuilt failed and is tried again", zap.Error(err))
		if !wait.For(ctx, reindexPause) {
			return ctx.Err()
		}
	}
}

func (p *Keeper) tryJudge(ctx context.Context, waiting []*backend.Resource, released []backend.Key) error {
	if len(waiting) > 0 {
		if err := p.cfg.Settle(ctx, waiting); err != nil {
			return err
		}
	}
	for _, key := range released {
		if err := p.cfg.Finish(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// derive is the reindex of one resource, and says whether it waits for others. It stays
// bound to what this gateway does not know that it refers to.
func (p *Keeper) derive(k *kind.Kind, r *backend.Resource) (reindex backend.Action, waits bool) {
	put := backend.Put{Fingerprint: k.Rows.Fingerprint}
	var judgement dependency.Judgement
	if st, err := kind.StateOf(r); err != nil {
		p.cfg.Unreadable.Note(r, err)
		put.Fingerprint += unreadableMark
	} else {
		put.Rows, waits = k.Rows.Of(st.Meta.Labels, st.Root()), len(st.Meta.Waits) > 0
		judgement = dependency.Of(r.Key, k.Rows.Refs(r.Namespace, st.Spec), dependency.Judged(k, r.Key, st, r.Refs)).Kept()
		if err := row.Check(r.Key, put.Rows); err != nil { // only under a definition that has more indexes than the one it was written under
			p.cfg.Logger.Warn("a stored resource is not found by all of its values", zap.Stringer("key", r.Key), zap.Error(err))
			put.Rows = put.Rows[:backend.MaxRows]
		}
	}
	put.Refs = judgement.With(r.Refs)
	return backend.Action{Key: r.Key, If: backend.Condition{Revision: r.Revision}, Op: backend.OpReindex, Put: put}, waits
}

// applyEach applies the actions but for those whose conditions fail, and
// returns how many they were: who has changed a resource meanwhile has made its
// rows, too, and if it was an older gateway the next look finds them.
func (p *Keeper) applyEach(ctx context.Context, actions []backend.Action) (int, error) {
	for len(actions) > 0 {
		_, err := p.applyAll(ctx, actions)
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
func (p *Keeper) applyAll(ctx context.Context, actions []backend.Action) (backend.Result, error) {
	return p.cfg.Store.Apply(ctx, backend.Batch{
		RequestID: p.cfg.NewID(),
		Deadline:  p.cfg.Clock().Add(p.cfg.WriteTimeout),
		Actions:   actions,
	})
}
