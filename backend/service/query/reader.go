package query

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/unreadable"
)

// Reader reads the resources of a catalogue's kinds. Safe for concurrent use.
type Reader struct {
	store      backend.Store
	kinds      kind.Catalogue
	unreadable *unreadable.Tracker
	sizes      sizes
}

// New reads from a store. It starts nothing.
func New(store backend.Store, kinds kind.Catalogue, unreadable *unreadable.Tracker) *Reader {
	return &Reader{store: store, kinds: kinds, unreadable: unreadable, sizes: newSizes(kinds)}
}
