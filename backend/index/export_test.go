package index

import (
	"strings"

	"github.com/sluicegw/sluice/backend"
)

// CompareItems is how items are ordered, of two values with the places behind them.
func CompareItems(value, place, other, otherPlace string) int {
	return compare(value, place, other, otherPlace)
}

// Content lists what a tree of a kind has, for comparison.
func (k *Kind) Content(index string) []string {
	var out []string
	k.Scan(Run{Index: index}, false, func(value string, e *Entry) bool {
		out = append(out, strings.Join([]string{value, e.Resource.Namespace, e.Resource.Name, e.Resource.Revision.String(), string(e.Resource.Body)}, "|"))
		return true
	})
	return out
}

// Packed are rows, each an index and a value, after they were packed.
func Packed(indexes []int, values []string) (gotIndexes []int, gotValues []string) {
	var rows []row
	for i, index := range indexes {
		rows = append(rows, row{index, values[i]})
	}
	for r := range packed(pack(rows, nil)).all() {
		gotIndexes, gotValues = append(gotIndexes, r.index), append(gotValues, r.value)
	}
	return gotIndexes, gotValues
}

// KindIndex is a kind as the index changes it, without a store.
type KindIndex struct{ *kindIndex }

// NewKindIndex makes an empty kind that takes changes.
func NewKindIndex(d *Definition) KindIndex { return KindIndex{newKindIndex(d, 0)} }

// Put takes a resource.
func (s KindIndex) Put(r *backend.Resource) {
	s.apply(change{key: r.Key, revision: r.Revision, entry: s.entry(r)}, 1)
}

// Kind is how readers see it.
func (s KindIndex) Kind() *Kind { return s.copy(nil, 1) }

// Remove takes a deletion.
func (s KindIndex) Remove(key backend.Key, at backend.Revision) {
	s.apply(change{key: key, revision: at}, 1)
}
