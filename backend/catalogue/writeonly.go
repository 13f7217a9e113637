package catalogue

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
)

// WriteOnly describes where a store keeps values that are, or once were, @writeOnly.
type WriteOnly struct {
	// Newest is the hash of the catalogue that the store has accepted last; empty if it has accepted none.
	Newest string

	sensitive map[string]bool
	paths     map[string][]string
}

// WriteOnlyOf returns where a store keeps values that are, or once were, @writeOnly. It finds out from the record of
// accepted catalogues.
func WriteOnlyOf(ctx context.Context, store backend.Store) (WriteOnly, error) {
	g := Gate{Store: store}
	out := WriteOnly{sensitive: map[string]bool{}, paths: map[string][]string{}}
	list, _, err := g.list(ctx)
	if err != nil || len(list.Hashes) == 0 {
		return out, err
	}
	out.Newest = list.Hashes[len(list.Hashes)-1]
	newest, err := g.outline(ctx, out.Newest)
	if err != nil {
		return out, err
	}
	for name, k := range newest.Kinds {
		if k.Sensitive {
			out.sensitive[name] = true
		}
	}
	for kind, paths := range list.Secrets {
		if !out.sensitive[kind] {
			out.paths[kind] = paths
		}
	}
	return out, nil
}

// Apart reports whether the write-only values of a kind are stored in separate records, see [backend.Key.Sensitive].
func (w WriteOnly) Apart(kind string) bool { return w.sensitive[kind] }

// Inside reports whether bodies of a kind may contain values that are, or once were, @writeOnly.
func (w WriteOnly) Inside(kind string) bool { return len(w.paths[kind]) > 0 }

// KindsInside returns the kinds for which [WriteOnly.Inside] is true, in order.
func (w WriteOnly) KindsInside() []string { return slices.Sorted(maps.Keys(w.paths)) }

// Without returns the JSON of a body without values that are, or once were, @writeOnly.
func (w WriteOnly) Without(kind string, body []byte) []byte {
	for _, path := range w.paths[kind] {
		body, _ = without(gjson.ParseBytes(body), strings.Split(path, "."))
	}
	return body
}
