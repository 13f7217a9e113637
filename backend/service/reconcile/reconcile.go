// Package reconcile follows the changes of a store. It re-evaluates resources that wait for a target, and finishes the
// deletion of resources that nothing holds any more. It also resolves the references of a write (Relate). Package
// dependency decides what a resource waits for, and package sender sends the batches.
//
// The declarations of a kind define which fields of a spec are references. Kind.Declared is the fingerprint of these
// declarations. Each resource is stored with the fingerprint of the declarations from which its references were
// derived. If the two differ, the references are foreign: a gateway with the newest catalogue derives them again, and
// other gateways do not change them.
//
// The effects of a change:
//
//	            change in the log
//	                    |            route: which gateway tries, and when
//	                    v
//	                 effects
//	     /              |               \
//	deleting,      created,            woken: became ready, unready,
//	released       changed             deleting or gone
//	     |              |                |  wake: reads its dependents
//	     v              v                v
//	  Finish         reevaluate, batches of what the dependents wait for
//	     |              |                |
//	     |              |                +--> became ready: wakes its own
//	     v              v                     dependents at once
//	delete, or     put, or rebind of references that no event shows
//	conditions          |
//	     \              |  releases what is no longer bound: Finish
//	      v             v
//	    a write of this gateway, which is a change in the log
//
// Which gateway handles them, and when:
//
//	the gateway that made the change       at once; it recognizes its request ids
//	any other gateway                      about 500 to 750 ms later, in case that one has died;
//	                                       usually nothing is left to do. At once if the
//	                                       references are foreign
//	one gateway with the newest catalogue  scans a kind when its fingerprint has changed; it
//	                                       claims the scan in the record of the shard
//	any gateway                            scans the pending deletions every 10 s
//
// The record of a shard also has the position from which a gateway that starts resumes. Several gateways may do the
// same work at once, because every write is conditional on the state that it was computed from.
//
// Run starts two goroutines for each shard, which retry until ctx ends: follower.run follows the changes, and
// follower.maintain saves the position, scans kinds and sweeps. One more goroutine reads the record of the kinds that
// controllers own.
package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/sender"
	"github.com/sluicegw/sluice/internal/span"
	"github.com/sluicegw/sluice/internal/wait"
)

// errNotNewest means that foreign references were not changed, because this gateway's catalogue is not the newest.
var errNotNewest = errors.New("references are left to a gateway with the newest catalogue")

// Config configures a [Reconciler]. All fields except Index, Remove, Handled, Reevaluated and Tracer are required.
type Config struct {
	// Sender sends the writes. Its tag begins the request ids of all changes by this gateway.
	*sender.Sender
	Kinds kind.Catalogue
	// Descriptors are the descriptors of Kinds.
	Descriptors []descriptor.Kind
	// Index is the index from which the first attempt of a write reads targets; nil if there is no index.
	Index      *index.Index
	Unreadable *kind.Unreadable
	Logger     *zap.Logger
	// Remove is called when the deletion of a resource that a service owns may be finished. It must make the service
	// delete the resource, and must return without waiting. It may be nil.
	Remove func(k *kind.Kind, key backend.Key)
	// Handled receives how long it took to handle a group of changes, in seconds. It may be nil.
	Handled backend.Observer
	// Reevaluated is called with the number of resources that were re-evaluated. It may be nil.
	Reevaluated func(resources int)
	// NewID returns a new id, for uids, request ids, and the name of this gateway in records.
	NewID func() string
	// Tracer traces the effects of changes that traced requests have made. If it is nil, they are not traced.
	Tracer *span.Tracer
}

// Reconciler resolves references, and follows the changes of all shards.
type Reconciler struct {
	cfg Config
	// hash is the hash of this gateway's catalogue, as the record of catalogues in the store has it.
	hash string
	// outline is the outline of this gateway's catalogue.
	outline catalogue.Outline
	// holder is the name of this gateway in claims of scans.
	holder      string
	controllers controllers
	// hasOwned reports whether services own kinds of the catalogue.
	hasOwned bool
	// followers has the follower of each shard, by the number of the shard. Run sets it before it starts the followers.
	followers []*follower
	// scanned is the set of shards in which all kinds were scanned with this gateway's declarations.
	scanned shardSet
	// log drops repeated messages, because all shards report the same outage.
	log *zap.Logger
}

// New returns a Reconciler. It starts nothing: see [Reconciler.Run].
func New(cfg Config) *Reconciler {
	cfg.Handled = backend.ObserverOr(cfg.Handled)
	if cfg.Reevaluated == nil {
		cfg.Reevaluated = func(int) {}
	}
	outline := catalogue.OutlineOf(cfg.Descriptors)
	return &Reconciler{
		cfg:      cfg,
		hash:     outline.Hash(),
		outline:  outline,
		holder:   cfg.NewID(),
		hasOwned: slices.ContainsFunc(cfg.Descriptors, func(k descriptor.Kind) bool { return k.Service != "" }),
		log:      LogOnce(cfg.Logger),
	}
}

// The shortest and the longest pause after a failure.
const (
	minPause = 20 * time.Millisecond
	maxPause = 2 * time.Second
)

// Run follows the changes of all shards until ctx ends or the store is closed. It logs failures and tries again.
func (r *Reconciler) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error {
		r.followControllers(ctx)
		return nil
	})
	var at backend.Position
	if r.retry(ctx, 0, "reading the position of the store", func() (err error) {
		at, err = r.cfg.Store.Position(ctx)
		return err
	}) != nil {
		return g.Wait()
	}
	r.followers = make([]*follower, at.Shards())
	for i := range r.followers {
		r.followers[i] = &follower{r: r, shard: i}
	}
	for i, f := range r.followers {
		g.Go(func() error {
			_ = r.retry(ctx, i, "following the changes of a shard", func() error { return f.run(ctx) })
			return nil
		})
		g.Go(func() error {
			_ = r.retry(ctx, i, "scanning a shard", func() error { return f.maintain(ctx) })
			return nil
		})
	}
	return g.Wait()
}

// RunReadOnly only follows which kinds controllers own, until ctx ends or the store is closed. It writes nothing.
func (r *Reconciler) RunReadOnly(ctx context.Context) error {
	r.followControllers(ctx)
	return nil
}

// retry calls do until do succeeds, ctx ends or the store is closed. It logs each failure. The argument what names the
// work in the message.
func (r *Reconciler) retry(ctx context.Context, shard int, what string, do func() error) error {
	backoff := wait.Backoff{Least: minPause, Most: maxPause}
	for {
		begin := time.Now()
		err := do()
		if err == nil || errors.Is(err, backend.ErrClosed) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(begin) > maxPause {
			backoff.Reset()
		}
		r.log.Warn(what+" failed and is tried again", zap.Int("shard", shard), zap.Error(err))
		if !backoff.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// LogInterval is the time within which a message is logged only once.
const LogInterval = 5 * time.Second

// LogOnce returns a logger that logs each message at most once in every [LogInterval], even if the fields differ.
func LogOnce(l *zap.Logger) *zap.Logger {
	return l.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, LogInterval, 1, 0)
	}))
}
