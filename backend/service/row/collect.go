package row

import (
	"bytes"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// appendIndex appends the rows of one index.
func appendIndex(out, of []backend.Row, index string) []backend.Row {
	for _, r := range of {
		if r.Index == index {
			out = append(out, r)
		}
	}
	return out
}

// rows collects index rows of which no two are equal.
type rows struct {
	all []backend.Row
	// from is where those of the present index begin.
	from int
	// seen are the values of the present index, once they are many.
	seen map[string]bool
	// before are rows that are taken where one is as it was, next is behind the last of
	// them that was taken.
	before []backend.Row
	next   int
	// scratch is where a value is encoded. A row that is new has memory of its own.
	scratch [96]byte
}

// fewRows is up to how many rows of an index each is compared with all.
const fewRows = 16

// walk adds the values of an index in a part of the body, nil if that is absent.
func (r *rows) walk(idx *index, part map[string]any) {
	if part != nil {
		idx.walk(part, 1, func(v any) { r.addValue(idx, v) })
	}
}

// addValue adds the row of a value, if it has one.
func (r *rows) addValue(idx *index, v any) {
	if value, ok := appendValue(r.scratch[:0], idx.Field, v); ok {
		r.add(idx.path, value)
	}
}

// add adds a row unless there is one like it. The memory of the value is used again.
func (r *rows) add(index string, value []byte) {
	if len(index)+len(value) > backend.MaxRowBytes {
		return
	}
	row := backend.Row{Index: index, Value: value}
	of := r.all[r.from:]
	switch {
	case len(of) < fewRows:
		if slices.ContainsFunc(of, row.Equal) {
			return
		}
	case r.seen == nil:
		r.seen = make(map[string]bool, 2*fewRows)
		for _, o := range of {
			r.seen[string(o.Value)] = true
		}
		fallthrough
	default:
		if r.seen[string(value)] {
			return
		}
		r.seen[string(value)] = true
	}
	r.all = append(r.all, r.own(row))
}

// own is the row as it was before, or with memory of its own.
func (r *rows) own(row backend.Row) backend.Row {
	for i := r.next; i < min(r.next+fewRows, len(r.before)); i++ {
		if r.before[i].Equal(row) {
			r.next = i + 1
			return r.before[i]
		}
	}
	row.Value = bytes.Clone(row.Value)
	return row
}

// sort orders the rows of the present index by their values, as the index in memory has
// them: a write that takes them over from there moves none of them.
func (r *rows) sort() {
	slices.SortFunc(r.all[r.from:], func(a, b backend.Row) int { return bytes.Compare(a.Value, b.Value) })
}
