// Package reconcile does the work that follows from changes: it ends the waiting of
// resources once what they refer to is there, ready or gone, and finishes deletions once
// nothing holds the resource. It also judges the references of a write, for the verbs.
//
//	            change in the log
//	                    |            route: which gateway tries, and when
//	                    v
//	              consequences
//	     /              |               \
//	deleting,      created,            woken: became ready, unready,
//	released       changed             deleting or gone
//	     |              |                |  wake: reads its dependents
//	     v              v                v
//	  Finish         settle, batches of what the dependents wait for
//	     |              |                |
//	     |              |                +--> became ready: wakes its own
//	     v              v                     dependents at once
//	delete, or     put, or rebind of references that no event shows
//	conditions          |
//	     \              |  releases what is no longer bound: Finish
//	      v             v
//	    a write of this gateway, which is a change in the log
//
// Three gateways may try, each at its time:
//
//	the gateway that made the change     at once; it knows its request ids
//	any other gateway                    500 to 750 ms later, in case that one died: mostly
//	                                     nothing is left to do then. At once if the references
//	                                     were taken by other declarations and its catalogue
//	                                     is the newest
//	the gateway that holds the lease     scans whole kinds once what they are judged by has
//	                                     changed, and every 10 s what is being deleted
//
// A record in the store, one for each shard, has the lease and the position up to which all
// changes were handled, where a gateway that starts goes on. Several gateways that do the
// same do no harm: each write is conditional on what it was judged by.
package reconcile

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/attempt"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/wait"
)

// errNotNewest: some references were taken by other declarations, and left as they are
// because this gateway's catalogue is not the newest.
var errNotNewest = errors.New("references are left to a gateway with the newest catalogue")

// Config of a [Reconciler]. All but Index is required.
type Config struct {
	// Sender makes the writes. Changes whose request ids begin with its tag are this gateway's.
	*attempt.Sender
	Kinds kind.Catalogue
	// Descriptors describe Kinds.
	Descriptors []descriptor.Kind
	// Index that the first attempt of a write reads targets from; nil for none.
	Index      *index.Index
	Unreadable *kind.Unreadable
	Logger     *zap.Logger
	// NewID makes uids, request ids and the name of this gateway in records.
	NewID func() string
}

// Reconciler judges references and follows the changes of all shards.
type Reconciler struct {
	cfg Config
	// catalogue is the hash of the kinds, as the store's record of catalogues has it.
	catalogue   string
	holder      string
	controllers controllers
	// log is limited: all shards log alike what the store does not answer.
	log *zap.Logger
}

// New starts nothing.
func New(cfg Config) *Reconciler {
	return &Reconciler{cfg: cfg, catalogue: catalogue.OutlineOf(cfg.Descriptors).Hash(), holder: cfg.NewID(), log: LogOnce(cfg.Logger)}
}

// Pauses after a failure.
const (
	minPause = 20 * time.Millisecond
	maxPause = 2 * time.Second
)

// Run follows all shards until ctx ends or the store is closed. What fails is logged and
// tried again.
func (r *Reconciler) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error {
		r.followControllers(ctx)
		return nil
	})
	at, ok := r.position(ctx)
	if !ok {
		return g.Wait()
	}
	for i := range at.Shards() {
		f := &follower{r: r, shard: i, ahead: map[backend.Key]backend.Revision{}}
		follow := func(do func(context.Context) error) error {
			_ = r.retry(ctx, i, "following the changes of a shard", func() error { return do(ctx) })
			return nil
		}
		g.Go(func() error { return follow(f.run) })
		g.Go(func() error {
			if !wait.For(ctx, rebindTime) { // until the last rebind of a gateway with an older catalogue is applied
				return nil
			}
			return follow(f.scanAgain)
		})
	}
	return g.Wait()
}

// position asks for the store's until it answers.
func (r *Reconciler) position(ctx context.Context) (backend.Position, bool) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		at, err := r.cfg.Store.Position(ctx)
		if err == nil {
			return at, true
		}
		if errors.Is(err, backend.ErrClosed) || !wait.For(ctx, pause) {
			return backend.Position{}, false
		}
	}
}

// retry does something again until it succeeds, ctx ends or the store is closed. what says
// in the log what has failed.
func (r *Reconciler) retry(ctx context.Context, shard int, what string, do func() error) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		begin := time.Now()
		err := do()
		if err == nil || errors.Is(err, backend.ErrClosed) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(begin) > maxPause {
			pause = minPause
		}
		r.log.Warn(what+" failed and is tried again", zap.Int("shard", shard), zap.Error(err))
		if !wait.For(ctx, pause) {
			return ctx.Err()
		}
	}
}
