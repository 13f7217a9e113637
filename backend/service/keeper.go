package service

import (
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// KeeperConfig of a [Keeper]. All of it is required.
type KeeperConfig struct {
	Store      backend.Store
	Kinds      catalogue
	Unreadable *tracker
	Logger     *zap.Logger
	// Clock is the store's, or the gateway's.
	Clock func() time.Time
	// NewID makes uids and request ids.
	NewID func() string
	// WriteTimeout is how long the store may take to begin a batch.
	WriteTimeout time.Duration
}

// Keeper keeps the index rows of every kind of this gateway's definition.
type Keeper struct{ cfg KeeperConfig }

// newKeeper starts nothing.
func newKeeper(cfg KeeperConfig) *Keeper { return &Keeper{cfg: cfg} }
