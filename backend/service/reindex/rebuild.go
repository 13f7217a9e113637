package reindex

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
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
	mine, err := p.claimKinds(ctx)
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
		mine, err := p.claimKinds(ctx)
		if err != nil {
			return n, err
		}
		if !slices.Contains(mine, k) {
			return n, nil
		}
	}
}

// reindex derives rows of resources anew, in batches of one namespace each, and returns how
// many it did.
func (p *Keeper) reindex(ctx context.Context, k *kind.Kind, resources []*backend.Resource) (n int, err error) {
	var batch []backend.Action
	size := 0
	flush := func() error {
		some, err := p.applyEach(ctx, batch)
		n += some
		batch, size = nil, 0
		return err
	}
	for _, r := range resources {
		a := p.derive(k, r)
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

// derive is the reindex of one resource.
func (p *Keeper) derive(k *kind.Kind, r *backend.Resource) backend.Action {
	put := backend.Put{Fingerprint: k.Rows.Fingerprint}
	if st, err := kind.StateOf(r); err != nil {
		p.cfg.Unreadable.Note(r, err)
		put.Fingerprint += unreadableMark
	} else {
		put.Rows = k.Rows.Of(st.Meta.Labels, st.Root())
		if err := row.Check(r.Key, put.Rows); err != nil { // only under a definition that has more indexes than the one it was written under
			p.cfg.Logger.Warn("a stored resource is not found by all of its values", zap.Stringer("key", r.Key), zap.Error(err))
			put.Rows = put.Rows[:backend.MaxRows]
		}
	}
	return backend.Action{Key: r.Key, If: backend.Condition{Revision: r.Revision}, Op: backend.OpReindex, Put: put}
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
