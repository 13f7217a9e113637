package query

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/unreadable"
)

// Reader reads the resources of a catalogue's kinds. Safe for concurrent use.
type Reader struct {
	store      backend.Store
	kinds      kind.Catalogue
	unreadable *unreadable.Tracker
	sizes      sizes
	index      *index.Index
	slots      *slots
	// declared are the references of each kind, by its name.
	declared map[string][]declared
}

// New reads from a store, or as far as it serves from the index over the store, which
// may be nil. It starts nothing.
func New(store backend.Store, kinds kind.Catalogue, unreadable *unreadable.Tracker, idx *index.Index) *Reader {
	return &Reader{store: store, kinds: kinds, unreadable: unreadable, sizes: newSizes(kinds), index: idx, slots: newSlots(), declared: declaredOf(kinds)}
}
