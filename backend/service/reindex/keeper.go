// Package reindex keeps the index rows of a store by the definitions of this
// gateway, and agrees with other gateways on whose definitions hold.
package reindex

import (
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
}

// Keeper keeps the index rows of every kind of this gateway's definition.
type Keeper struct {
	cfg Config
}

// New starts nothing.
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg} }
