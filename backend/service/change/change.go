package change

import (
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// Request asks for a stream of changes.
type Request struct {
	// Kinds; none means all of the catalogue.
	Kinds []string
	// Namespace and Name narrow the stream; nil means all.
	Namespace, Name *string
	// After is the cursor last seen; nil means from now on.
	After *string
	// Filter and FieldNames are as of ListRequest; the filter is for streams of one kind.
	Filter     any
	FieldNames failure.FieldNames
	// Snapshot sends the state first, between RESET and IN_SYNC, unless After can
	// be continued from, and again after RESET where the stream cannot go on.
	Snapshot bool
}

// Type is the type of an event in a stream of changes.
type Type string

// The types of events. RESET, IN_SYNC and BOOKMARK are marks. IN_SYNC comes when the
// stream is live, and at the end of each snapshot; BOOKMARK when it was silent for a while.
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
	// Cursor resumes the stream after this event; empty from RESET to the end of a snapshot.
	Cursor string
	// Revision of the change; empty for a mark, and where a change of the caller's rights is all that happened.
	Revision string
	// Key of the resource; zero for a mark.
	Key backend.Key
	// Stored is the resource at that revision, for DELETED its last state; nil for a mark, and for DELETED of
	// what the caller may see no longer.
	Stored *backend.Resource
	// Number counts the events of a stream that is live: of a mark, those before it.
	Number uint64

	feed *Feed
	body *body.Body // if it was read already
	// position is the log position of a change that is sent between pages of the state.
	position backend.Position
}

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
	cfg   Config
	cache *changeCache
}

// New starts nothing.
func New(cfg Config) *Feed {
	return &Feed{cfg: cfg, cache: &changeCache{index: cfg.Index}}
}

// View returns the feed of a view of the catalogue, whose reader is r. It shares the changes that were read.
func (f *Feed) View(kinds kind.Catalogue, r *query.Reader) *Feed {
	out := *f
	out.cfg.Kinds = kinds
	out.cfg.Reader = r
	return &out
}

// change returns the event of a resource that was read.
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
