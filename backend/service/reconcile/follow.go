package reconcile

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/internal/wait"
)

// step is how many resources are read at a time.
const step = 500

// judgementsPause is after how long of silence is asked whether resources are judged by
// something else now.
const judgementsPause = time.Second

// follower judges anew what follows from the changes of a shard.
type follower struct {
	r     *Reconciler
	lease *lease
	// judgements are those by which everything was judged.
	judgements string
	// ahead are the resources whose dependents were judged before the change that made them
	// ready was read, with the revision of that change.
	ahead map[backend.Key]backend.Revision
}

// run follows the shard from where the lease says that everything was judged.
func (f *follower) run(ctx context.Context) error {
	at, judgements := f.lease.place()
	f.judgements = judgements
	for {
		var err error
		if at.IsZero() || f.judgements != f.r.cfg.Judge.Judgements() {
			if at, err = f.scan(ctx); err != nil {
				return err
			}
		}
		at, err = f.follow(ctx, at)
		switch {
		case errors.Is(err, backend.ErrPositionExpired):
			f.r.cfg.Logger.Info("the changes since the last judgement are gone from the log: everything is judged anew", zap.Int("shard", f.lease.shard))
			at = backend.Position{}
		case errors.Is(err, backend.ErrLagged), errors.Is(err, errJudgements):
		default:
			return err
		}
	}
}

// errJudgements: resources are judged by something else now.
var errJudgements = errors.New("resources are judged by something else")

// follow judges what follows from the changes after a position, and returns the place
// that it came to.
func (f *follower) follow(ctx context.Context, at backend.Position) (backend.Position, error) {
	w, err := f.r.cfg.Hub.Watch(ctx, hub.Watch{From: at, Covers: f.covers, Reserved: true})
	if err != nil {
		return at, err
	}
	defer w.Close()
	for {
		d, err := w.NextBefore(ctx, time.Now().Add(judgementsPause))
		if err != nil && !errors.Is(err, hub.ErrIdle) {
			return at, err
		}
		if f.judgements != f.r.cfg.Judge.Judgements() {
			return at, errJudgements
		}
		if err != nil {
			at = w.Position()
		} else {
			if err := f.again(ctx, func() error { return f.judge(ctx, d.Events) }); err != nil {
				return at, err
			}
			at = d.Position
		}
		f.lease.done(at, f.judgements)
	}
}

// covers says whether a change may be of consequence.
func (f *follower) covers(key backend.Key) bool {
	if s, ok := f.r.cfg.Store.(backend.Sharder); ok && s.Shard(key.Namespace) != f.lease.shard {
		return false
	}
	k, err := f.r.cfg.Kinds.Find(key.Kind)
	return err == nil && (k.Referred || len(k.References) > 0 || k.Conditions != nil)
}

// again does something until it succeeds, or what is wrong is more than that the store
// does not answer now.
func (f *follower) again(ctx context.Context, do func() error) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := do()
		if err == nil || errors.Is(err, backend.ErrClosed) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.r.cfg.Logger.Warn("judging what follows from a change failed and is tried again", zap.Int("shard", f.lease.shard), zap.Error(err))
		if !wait.For(ctx, pause) {
			return ctx.Err()
		}
	}
}
