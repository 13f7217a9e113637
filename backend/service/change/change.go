package change

import (
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// Request asks for a stream of changes.
type Request struct {
	// Kinds to watch; none means all kinds of the catalogue.
	Kinds []string
	// Namespace and Name narrow the stream; nil means all.
	Namespace, Name *string
	// After is the cursor to resume after; nil means from now on.
	After *string
	// Filter and FieldNames are as in ListRequest. Only streams of one kind have a
	// filter.
	Filter     any
	FieldNames failure.FieldNames
	// Snapshot sends a snapshot first, between RESET and IN_SYNC, unless the stream can
	// continue from After. It is sent again, after RESET, if the stream cannot continue
	// later.
	Snapshot bool
}

// Type is the type of an event in a stream of changes.
type Type string

// The types of events. RESET, IN_SYNC and BOOKMARK are marks. IN_SYNC comes when the stream
// is live and at the end of each snapshot, BOOKMARK after a silence.
const (
	Reset    Type = "RESET"
	Snapshot Type = "SNAPSHOT"
	InSync   Type = "IN_SYNC"
	Added    Type = "ADDED"
	Modified Type = "MODIFIED"
	Deleted  Type = "DELETED"
	Bookmark Type = "BOOKMARK"
)

// Change is one event of a stream.
type Change struct {
	Type Type
	// Cursor is the cursor to resume after this event; empty from RESET to the end of a
	// snapshot.
	Cursor string
	// Revision of the change; empty for a mark, and if only the caller's rights have changed.
	Revision string
	// Key of the resource; zero for a mark.
	Key backend.Key
	// Stored is the resource at that revision, for DELETED its last state. It is nil for a mark,
	// and for a DELETED resource that the caller may no longer see.
	Stored *backend.Resource
	// Number counts the events of a live stream. A mark has the number of the event
	// before it.
	Number uint64

	feed  *Feed
	event *backend.Event // of the log; nil for a mark, and for what was read
	body  *body.Body     // if it was read already
	// position is the log position of a change that is sent between pages of the snapshot.
	position backend.Position
}

// Trace returns the traceparent of the write that made the change; empty unless that was traced.
func (c *Change) Trace() string {
	if c.event == nil {
		return ""
	}
	return access.TraceOf(c.event.Actor)
}

// Config of a [Feed]. All fields but Index are required.
type Config struct {
	Store      backend.Store
	Hub        *hub.Hub
	Kinds      kind.Catalogue
	Unreadable *kind.Unreadable
	// Reader reads states from memory.
	Reader *query.Reader
	// Index in memory; nil for none.
	Index *index.Index
	// BookmarkInterval is the silence after which a stream sends a BOOKMARK.
	BookmarkInterval time.Duration
}

// Feed creates streams of changes. It is safe for concurrent use.
type Feed struct {
	cfg   Config
	cache *changeCache
}

// New returns a feed. It starts nothing.
func New(cfg Config) *Feed {
	return &Feed{cfg: cfg, cache: &changeCache{index: cfg.Index}}
}

// View returns the feed of a view of the catalogue, whose reader is r. Both share the cache of
// changes.
func (f *Feed) View(kinds kind.Catalogue, r *query.Reader) *Feed {
	out := *f
	out.cfg.Kinds = kinds
	out.cfg.Reader = r
	return &out
}

// change returns an event for a resource that was read.
func (f *Feed) change(t Type, r *query.Resource) Change {
	return Change{
		Type:     t,
		Revision: r.Stored.Revision.String(),
		Key:      r.Stored.Key,
		Stored:   r.Stored,
		feed:     f,
		body:     r.Body,
	}
}
