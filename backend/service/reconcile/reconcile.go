// Package reconcile re-evaluates resources whose references wait for a target, and finishes
// deletions that nothing holds any more. For the verbs it also resolves the references of a
// write (Relate). What a resource waits for is decided in package dependency; batches are sent by package sender.
//
// The declarations of a kind tell which fields of a spec are references. Kind.Declared is the
// fingerprint of these declarations. Each resource stores the fingerprint by which its own
// references were taken. If the two differ, the references are foreign: a gateway with the
// newest catalogue takes them again, any other gateway keeps them.
//
// What follows from a change:
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
// Who handles it, and when:
//
//	the gateway that made the change       at once; it knows its request ids
//	any other gateway                      about 500 to 750 ms later, in case that one died:
//	                                       mostly nothing is left to do then. At once if the
//	                                       references are foreign
//	one gateway with the newest catalogue  scans a kind when its fingerprint has changed; it
//	                                       claims the scan in the record of the shard
//	any gateway                            scans the pending deletions every 10 s
//
// The record of a shard also has the position from which a gateway that starts resumes.
// Gateways may do the same work at once: every write is conditional on the state that it
// was computed from.
//
// Run starts two goroutines for each shard, which retry until ctx ends: follower.run follows
// the changes, and follower.maintain saves the position, scans and sweeps. One more reads the
// record of the kinds that controllers own.
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

// errNotNewest means that some references were derived by other declarations and were
// not changed, because this gateway's catalogue is not the newest.
var errNotNewest = errors.New("references are left to a gateway with the newest catalogue")

// Config of a [Reconciler]. All but Index, Remove, Handled, Reevaluated and Tracer are required.
type Config struct {
	// Sender makes the writes. Changes whose request ids begin with its tag are this gateway's.
	*sender.Sender
	Kinds kind.Catalogue
	// Descriptors describe Kinds.
	Descriptors []descriptor.Kind
	// Index that the first attempt of a write reads targets from; nil for none.
	Index      *index.Index
	Unreadable *kind.Unreadable
	Logger     *zap.Logger
	// Remove is called for a resource of a kind that a service owns, when its deletion may be
	// finished and the service has to be asked. It must not wait. Default: no call.
	Remove func(k *kind.Kind, key backend.Key)
	// Handled takes how long it took to handle what follows from a group of changes, in seconds; nil: nothing is
	// measured.
	Handled backend.Observer
	// Reevaluated is called with how many resources were re-evaluated; nil for no call.
	Reevaluated func(resources int)
	// NewID makes uids, request ids and the name of this gateway in records.
	NewID func() string
	// Tracer traces what follows from changes that were made by traced requests; nil traces nothing.
	Tracer *span.Tracer
}

// Reconciler resolves references and follows the changes of all shards.
type Reconciler struct {
	cfg Config
	// hash is the hash of this gateway's catalogue in the store's record.
	hash string
	// outline is the outline of this gateway's catalogue.
	outline catalogue.Outline
	// holder identifies this gateway in the claims of scans.
	holder      string
	controllers controllers
	// hasOwned reports whether services own kinds of the catalogue.
	hasOwned bool
	// followers of the shards, by their numbers. Run sets them before it starts any.
	followers []*follower
	// scanned are the shards in which all kinds were scanned with this gateway's
	// declarations.
	scanned shardSet
	// log is rate-limited, since all shards report the same outage.
	log *zap.Logger
}

// New returns a Reconciler. Run starts it.
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

// Pauses after a failure.
const (
	minPause = 20 * time.Millisecond
	maxPause = 2 * time.Second
)

// Run follows all shards until ctx ends or the store is closed. Failures are logged, and
// the work is tried again.
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

// RunReadOnly follows which kinds controllers own, until ctx ends or the store is closed. It writes nothing.
func (r *Reconciler) RunReadOnly(ctx context.Context) error {
	r.followControllers(ctx)
	return nil
}

// retry repeats do until it succeeds, ctx ends or the store is closed. what describes the
// work in the log.
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

// LogInterval is the time for which a message is not logged again.
const LogInterval = 5 * time.Second

// LogOnce returns a logger that writes each message once in every [LogInterval], whatever its
// fields, and drops repetitions.
func LogOnce(l *zap.Logger) *zap.Logger {
	return l.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, LogInterval, 1, 0)
	}))
}
