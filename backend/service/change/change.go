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

// Request selects the changes that a stream sends.
type Request struct {
	// Kinds are the names of the kinds to watch; empty for all kinds of the catalogue that offer WATCH.
	Kinds []string
	// Namespace and Name restrict the stream to a namespace and a name; nil for no restriction.
	Namespace, Name *string
	// After is the cursor after which the stream resumes. If it is nil, the stream begins with the changes from now on.
	After *string
	// Filter and FieldNames have the same meaning as in query.ListRequest. If there are several kinds, the filter may
	// only use fields that all of them have.
	Filter     any
	FieldNames failure.FieldNames
	// Snapshot makes the stream begin with a snapshot, between RESET and IN_SYNC, unless the stream can resume from
	// After. If the stream cannot continue later, it sends RESET and another snapshot.
	Snapshot bool
}

// Type is the type of an event in a stream of changes.
type Type string

// The types of events. RESET, IN_SYNC and BOOKMARK are marks, which have no resource. IN_SYNC is sent when the stream
// begins to send live changes, and so at the end of each snapshot. BOOKMARK is sent after a time without events.
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
	// Cursor resumes the stream after this event. It is empty from RESET to the end of a snapshot.
	Cursor string
	// Revision is the revision of the change. It is empty for a mark, and for an event that was caused only by a change
	// of the caller's rights.
	Revision string
	// Key is the key of the resource; zero for a mark.
	Key backend.Key
	// Stored is the resource after the change. For DELETED it is the last state of the resource. It is nil for a mark,
	// and for a DELETED resource that the caller may no longer see.
	Stored *backend.Resource
	// Number counts the changes of a live stream. A mark has the number of the change before the mark.
	Number uint64

	feed  *Feed
	event *backend.Event // the log entry; nil for a mark, and for a resource that was read from the index or the store
	body  *body.Body     // the decoded body; nil if it was not decoded yet
	// position is the log position of a change that is sent between pages of the snapshot.
	position backend.Position
}

// Trace returns the traceparent of the write that made the change; empty if the write was not traced.
func (c *Change) Trace() string {
	if c.event == nil {
		return ""
	}
	return access.TraceOf(c.event.Actor)
}

// Config configures a [Feed]. All fields but Index are required.
type Config struct {
	Store      backend.Store
	Hub        *hub.Hub
	Kinds      kind.Catalogue
	Unreadable *kind.Unreadable
	// Reader reads resources from the index.
	Reader *query.Reader
	// Index is the index in memory; nil if there is none.
	Index *index.Index
	// BookmarkInterval is the time without events after which a stream sends a BOOKMARK.
	BookmarkInterval time.Duration
}

// Feed opens streams of changes. It is safe for concurrent use.
type Feed struct {
	cfg   Config
	cache *changeCache
}

// New returns a feed.
func New(cfg Config) *Feed {
	return &Feed{cfg: cfg, cache: &changeCache{index: cfg.Index}}
}

// View returns a feed for a view of the catalogue. r is the reader of this view. Both feeds share the cache of changes.
func (f *Feed) View(kinds kind.Catalogue, r *query.Reader) *Feed {
	out := *f
	out.cfg.Kinds = kinds
	out.cfg.Reader = r
	return &out
}

// change returns an event for a resource that was read by a query.
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
