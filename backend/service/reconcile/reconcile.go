// Package reconcile follows the changes of a store and re-evaluates what depends on them:
// what waits for a resource once that is there, ready or gone, and what is being deleted
// once nothing holds it.
//
// Every gateway follows the log of every shard:
//
//	a change of this gateway           handled at once
//	a change of another gateway        500 to 750 ms later, in case that gateway died:
//	                                   mostly nothing is left to do then
//	references taken by other          at once, if this gateway's catalogue is the newest
//	declarations
//
// A record in the store, one for each shard, has the position up to which all changes were
// handled, where a gateway that starts goes on. It also says which gateway scans: whole
// kinds once what they are judged by has changed, and every 10 s what is being deleted. Two gateways that do the same do no harm: each write is conditional on
// what it was based on.
package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/loglimit"
	"github.com/sluicegw/sluice/internal/wait"
)

// ErrNotNewest: some references were taken by other declarations, and left as they are
// because this gateway's catalogue is not the newest.
var ErrNotNewest = errors.New("references are left to a gateway with the newest catalogue")

// Judge re-evaluates resources, and stores what has changed. All of it may be done more
// than once, and by several gateways at the same time.
type Judge interface {
	// Settle judges what resources of one namespace refer to and wait for, and returns
	// those that became ready, as they are stored now. known are resources that it has just
	// stored.
	// ErrNotNewest says that it has done so but for some.
	Settle(ctx context.Context, resources, known []*backend.Resource) (ready []*backend.Resource, err error)
	// Finish deletes a resource whose deletion waits, if nothing holds it.
	Finish(ctx context.Context, key backend.Key) error
	// Conclude looks at resources that were created and wait for nothing.
	Conclude(ctx context.Context, created []*backend.Resource) error
	// JudgedBy names what the resources of a kind are judged by.
	JudgedBy(ctx context.Context, k *kind.Kind) (string, error)
	// Newest reports whether this gateway's catalogue is the newest of the store's.
	Newest(ctx context.Context) (bool, error)
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
	// NewID makes uids, request ids and the name of this gateway in records.
	NewID func() string
	// WriteTimeout is how long the store may take to begin a batch.
	WriteTimeout time.Duration
	// Tag begins the request ids of this gateway's changes.
	Tag string
	// Delay is how long the first scan waits, so that no gateway with an older catalogue
	// undoes it: by then its last rebind is applied.
	Delay time.Duration
}

// Reconciler follows the changes of all shards.
type Reconciler struct {
	cfg    Config
	holder string
	// rebinds says for each shard whether references of other declarations may be replaced:
	// the record has forgotten what they were judged by before. It is made by Run.
	rebinds atomic.Pointer[[]atomic.Bool]
}

// Rebinds reports whether references in a namespace that were taken by other declarations
// may be replaced, if this gateway's catalogue is the newest. A rebind has no log entry; a
// gateway whose catalogue is the newest afterwards scans the kinds that the record has
// forgotten.
func (r *Reconciler) Rebinds(namespace string) bool {
	shard := 0
	if s, ok := r.cfg.Store.(backend.Sharder); ok {
		shard = s.Shard(namespace)
	}
	shards := r.rebinds.Load()
	return shards != nil && (*shards)[shard].Load()
}

// New starts nothing.
func New(cfg Config) *Reconciler {
	cfg.Logger = loglimit.Once(cfg.Logger) // all shards log alike what the store does not answer
	return &Reconciler{cfg: cfg, holder: cfg.NewID()}
}

// Pauses after a failure.
const (
	minPause = 20 * time.Millisecond
	maxPause = 2 * time.Second
)

// Run follows all shards until ctx ends or the store is closed. What fails is logged and
// tried again.
func (r *Reconciler) Run(ctx context.Context) error {
	at, ok := r.position(ctx)
	if !ok {
		return nil
	}
	var g errgroup.Group
	shards := make([]atomic.Bool, at.Shards())
	r.rebinds.Store(&shards)
	for i := range at.Shards() {
		f := &follower{r: r, shard: i, ahead: map[backend.Key]backend.Revision{}}
		g.Go(func() error {
			r.repeat(ctx, i, f.run)
			return nil
		})
		g.Go(func() error {
			if wait.For(ctx, r.cfg.Delay) {
				r.repeat(ctx, i, f.scanAgain)
			}
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

// repeat does something that never ends again when it fails.
func (r *Reconciler) repeat(ctx context.Context, shard int, do func(context.Context) error) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		begin := time.Now()
		err := do(ctx)
		if ctx.Err() != nil || errors.Is(err, backend.ErrClosed) {
			return
		}
		if time.Since(begin) > maxPause {
			pause = minPause
		}
		r.cfg.Logger.Warn("following the changes of a shard failed and is tried again", zap.Int("shard", shard), zap.Error(err))
		if !wait.For(ctx, pause) {
			return
		}
	}
}
