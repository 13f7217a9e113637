package query

import (
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/row"
)

// Definitions are the kinds of a catalogue for the index in memory, but for those that
// are not kept there: what queries look for.
func Definitions(kinds kind.Catalogue) (out []index.Definition) {
	for _, k := range kinds.All() {
		if k.OutOfMemory {
			continue
		}
		names, sortable := k.Rows.Indexes()
		if k.Scope != descriptor.Global {
			names = append(names, index.NameIndex)
		}
		out = append(out, index.Definition{
			Name: k.Name, Indexes: names, Sortable: sortable, ByCreation: []string{row.LabelIndex},
			Rows: k.Rows.Of,
			Keep: keeperOf(k),
		})
	}
	return out
}

// keeperOf reads bodies of a kind that are kept.
func keeperOf(k *kind.Kind) func(*backend.Resource) (body.Body, int, error) {
	arenas := sync.Pool{New: func() any { return new(body.Arena) }}
	return func(r *backend.Resource) (body.Body, int, error) {
		a := arenas.Get().(*body.Arena)
		defer arenas.Put(a)
		return a.Keep(k.Body, r)
	}
}
