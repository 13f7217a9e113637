// Package reconcile follows the changes of a store and has everything judged anew that
// follows from them: what waits for a resource once that is there, ready or gone, and
// what is deleted once nothing holds it. The gateways of a store divide its shards by
// leases. Two that hold one lease for a moment do no harm: each write says on what it
// is based.
package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/loglimit"
	"github.com/sluicegw/sluice/internal/wait"
)

// Judge judges resources anew, and stores what has changed. All of it may be done more
// than once, and by several gateways at the same time.
type Judge interface {
	// Settle judges what resources of one namespace wait for, and returns those that became
	// ready, as they are stored now. known are resources that it has just stored.
	Settle(ctx context.Context, resources, known []*backend.Resource) (ready []*backend.Resource, err error)
	// Finish deletes a resource whose deletion waits, if nothing holds it.
	Finish(ctx context.Context, key backend.Key) error
	// Conclude looks at resources that were created and wait for nothing.
	Conclude(ctx context.Context, created []*backend.Resource) error
	// Judgements names what resources are judged by.
	Judgements() string
}

// Config of a [Reconciler]. All of it is required.
type Config struct {
	Store  backend.Store
	Hub    *hub.Hub
	Kinds  kind.Catalogue
	Judge  Judge
	Logger *zap.Logger
	// Clock is the store's, or the gateway's.
	Clock func() time.Time
	// NewID makes uids, request ids and the name of this holder of leases.
	NewID func() string
	// WriteTimeout is how long the store may take to begin a batch.
	WriteTimeout time.Duration
}

// Reconciler follows the changes of the shards whose leases it holds.
type Reconciler struct {
	cfg    Config
	holder string
	// catalogue names the kinds and their references. Gateways of other catalogues have
	// leases of their own: they do not know all that is to be judged.
	catalogue string
}

// New starts nothing.
func New(cfg Config) *Reconciler {
	h := sha256.New()
	for _, k := range cfg.Kinds.All() {
		_, _ = fmt.Fprintln(h, k.Name, k.Declared, k.Conditions != nil)
	}
	cfg.Logger = loglimit.Once(cfg.Logger) // all shards say alike what the store does not answer
	return &Reconciler{cfg: cfg, holder: cfg.NewID(), catalogue: hex.EncodeToString(h.Sum(nil)[:8])}
}

// Pauses after a failure.
const (
	minPause = 20 * time.Millisecond
	maxPause = 2 * time.Second
)

// Run follows all shards whose leases it gets until ctx ends or the store is closed.
// What fails is logged and tried again.
func (r *Reconciler) Run(ctx context.Context) error {
	at, ok := r.position(ctx)
	if !ok {
		return nil
	}
	var g errgroup.Group
	for i := range at.Shards() {
		g.Go(func() error {
			r.shard(ctx, i)
			return nil
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

// shard follows one shard whenever its lease is free.
func (r *Reconciler) shard(ctx context.Context, shard int) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		l, err := r.acquire(ctx, shard)
		switch {
		case ctx.Err() != nil || errors.Is(err, backend.ErrClosed):
			return
		case errors.Is(err, errHeld):
			pause = acquirePause
		case err == nil:
			pause = minPause
			if err = r.hold(ctx, l); ctx.Err() == nil && !errors.Is(err, errLeaseLost) {
				r.cfg.Logger.Warn("following the changes of a shard failed and is tried again", zap.Int("shard", shard), zap.Error(err))
			}
		default:
			r.cfg.Logger.Warn("the lease of a shard could not be read", zap.Int("shard", shard), zap.Error(err))
		}
		if !wait.For(ctx, pause) {
			return
		}
	}
}

// hold follows a shard while the lease is held, and gives it back at the end.
func (r *Reconciler) hold(ctx context.Context, l *lease) error {
	g, held := errgroup.WithContext(ctx)
	f := &follower{r: r, lease: l, ahead: map[backend.Key]backend.Revision{}}
	g.Go(func() error { return r.renew(held, l) })
	g.Go(func() error { return f.run(held) })
	err := g.Wait()
	r.release(context.WithoutCancel(ctx), l)
	return err
}
