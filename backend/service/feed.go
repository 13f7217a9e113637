package service

import (
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
)

// FeedConfig of a [Feed]. All of it is required.
type FeedConfig struct {
	Store      backend.Store
	Hub        *hub.Hub
	Kinds      catalogue
	Unreadable *tracker
	// BookmarkInterval is after how long of silence a stream tells its cursor.
	BookmarkInterval time.Duration
}

// Feed gives the streams of changes. Safe for concurrent use.
type Feed struct {
	store      backend.Store
	hub        *hub.Hub
	kinds      catalogue
	unreadable *tracker
	bookmarks  time.Duration
	recent     recent
}

// newFeed starts nothing.
func newFeed(cfg FeedConfig) *Feed {
	return &Feed{store: cfg.Store, hub: cfg.Hub, kinds: cfg.Kinds, unreadable: cfg.Unreadable, bookmarks: cfg.BookmarkInterval}
}
