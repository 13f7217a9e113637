package page

import (
	"sync/atomic"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// overhead is what a resource holds beside its body: its record and key, the table of the
// body, its place on a page.
const overhead = 640

// sizes are the mean sizes in bytes of the resources read last, by names of kinds.
type sizes map[string]*atomic.Int64

func newSizes(kinds kind.Catalogue) sizes {
	out := sizes{}
	for _, k := range kinds.All() {
		out[k.Name] = &atomic.Int64{}
	}
	return out
}

func (s sizes) learn(k *kind.Kind, bytes, resources int) {
	if resources > 0 {
		mean := s[k.Name]
		mean.Store((mean.Load() + int64(bytes/resources)) / 2)
	}
}

// Mean is how large a resource of a kind is, as far as it is known.
func (r *Reader) Mean(k *kind.Kind) int {
	if k == nil {
		return 2 * overhead
	}
	return max(int(r.sizes[k.Name].Load()), 2*overhead)
}

// Estimate is what a read of so many resources of a kind will hold, as far as that is known:
// no read returns more than a page.
func (r *Reader) Estimate(k *kind.Kind, resources int) int {
	return min(resources*r.Mean(k), backend.MaxPageBytes)
}

// Size is what resources hold; those that are nil hold nothing.
func Size(resources []*backend.Resource) (n int) {
	for _, r := range resources {
		if r != nil {
			n += SizeOf(r)
		}
	}
	return n
}

// SizeOf is what a resource holds.
func SizeOf(r *backend.Resource) int { return overhead + len(r.Body) }
