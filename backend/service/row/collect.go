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
}

// fewRows is up to how many rows of an index each is compared with all.
const fewRows = 16

func (r *rows) add(index string, value []byte) {
	if value == nil || len(index)+len(value) > backend.MaxRowBytes {
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
	r.all = append(r.all, row)
}

// sort orders the rows of the present index by their values, as the index in memory has
// them: a write that takes them over from there moves none of them.
func (r *rows) sort() {
	slices.SortFunc(r.all[r.from:], func(a, b backend.Row) int { return bytes.Compare(a.Value, b.Value) })
}
