// Package reindex keeps the index rows of a store by the definitions of this
// gateway, and agrees with other gateways on whose definitions hold.
package reindex

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/unreadable"
)

// Config of a [Keeper]. All of it is required.
type Config struct {
	Store      backend.Store
	Kinds      kind.Catalogue
	Unreadable *unreadable.Tracker
	Logger     *zap.Logger
	// Clock is the store's, or the gateway's.
	Clock func() time.Time
	// NewID makes uids and request ids.
	NewID func() string
	// WriteTimeout is how long the store may take to begin a batch.
	WriteTimeout time.Duration
	// Settle judges anew what resources of one namespace wait for, once their references are
	// those of this gateway's definition: while they were those of another, what is waited for
	// may have changed and not have found them.
	Settle func(ctx context.Context, resources []*backend.Resource) error
	// Finish deletes a resource whose deletion waits, if nothing holds it, once a definition
	// with fewer guards has let go of it.
	Finish func(ctx context.Context, key backend.Key) error
}

// Keeper keeps the index rows of every kind of this gateway's definition.
type Keeper struct {
	cfg  Config
	once sync.Once
	// claimed is closed once held is known.
	claimed chan struct{}
	held    atomic.Pointer[Held]
}

// Held are the kinds, by name, for which the definition of this gateway holds; of the
// others a newer gateway has another.
type Held map[string]bool

// New starts nothing.
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg, claimed: make(chan struct{})} }

// Claimed is closed once it is known for which kinds this gateway's definition holds.
func (p *Keeper) Claimed() <-chan struct{} { return p.claimed }

// Held are the kinds for which this gateway's definition held when it looked last, which
// it does every two seconds; nil before the first time. Another set is another pointer.
func (p *Keeper) Held() *Held { return p.held.Load() }

// Look reads for which kinds this gateway's definition holds, or will hold once the Keeper
// has claimed them. It writes nothing.
func (p *Keeper) Look(ctx context.Context) (Held, error) {
	_, d, err := p.definitions(ctx)
	switch {
	case errors.Is(err, errDefinitionFormat):
		return Held{}, nil // a newer release holds all
	case err != nil:
		return nil, err
	}
	_, mine, _ := d.claimAll(p.cfg.Kinds, p.cfg.Clock())
	return heldOf(mine), nil
}

func heldOf(mine []*kind.Kind) Held {
	out := make(Held, len(mine))
	for _, k := range mine {
		out[k.Name] = true
	}
	return out
}

// claim claims what it can, and returns the kinds whose rows this gateway makes: none
// beside a newer release, whose record it cannot read.
func (p *Keeper) claim(ctx context.Context) ([]*kind.Kind, error) {
	mine, err := p.claimKinds(ctx)
	if err != nil && !errors.Is(err, errDefinitionFormat) {
		return nil, err
	}
	held := heldOf(mine)
	if old := p.held.Load(); old == nil || !maps.Equal(*old, held) {
		p.held.Store(&held)
	}
	p.once.Do(func() { close(p.claimed) })
	return mine, err
}
