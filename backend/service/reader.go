package service

import (
	"github.com/sluicegw/sluice/backend"
)

// Reader reads the resources of a catalogue's kinds. Safe for concurrent use.
type Reader struct {
	store      backend.Store
	kinds      catalogue
	unreadable *tracker
}

// newReader reads from a store. It starts nothing.
func newReader(store backend.Store, kinds catalogue, unreadable *tracker) *Reader {
	return &Reader{store: store, kinds: kinds, unreadable: unreadable}
}
