package change

import (
	"sync/atomic"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// Config of a [Feed]. All but Index is required.
type Config struct {
	Store      backend.Store
	Hub        *hub.Hub
	Kinds      kind.Catalogue
	Unreadable *kind.Unreadable
	// Reader reads states from memory.
	Reader *query.Reader
	// Index in memory; nil for none.
	Index *index.Index
	// BookmarkInterval is after how long of silence a stream tells its cursor.
	BookmarkInterval time.Duration
}

// Feed gives the streams of changes. Safe for concurrent use.
type Feed struct {
	cfg    Config
	recent recent
	era    *atomic.Pointer[era]
}

// New starts nothing.
func New(cfg Config) *Feed { return &Feed{cfg: cfg, recent: recent{index: cfg.Index}, era: newEras()} }
