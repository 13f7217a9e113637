package page

import (
	"sync/atomic"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// overhead is the memory of a resource besides its body, in bytes: its record and key, the table of
// the body, its edge.
const overhead = 640

// sizes holds the mean sizes in bytes of the resources read last, by kind.
type sizes map[string]*atomic.Int64

func newSizes(kinds kind.Catalogue) sizes {
	out := sizes{}
	for _, k := range kinds.All() {
		out[k.Name] = &atomic.Int64{}
	}
	return out
}

// learn updates the mean size of a kind. A concurrent update may be lost, which does no harm.
func (s sizes) learn(k *kind.Kind, bytes, resources int) {
	if resources > 0 {
		mean := s[k.Name]
		mean.Store((mean.Load() + int64(bytes/resources)) / 2)
	}
}

// Mean returns the estimated size of a resource of a kind.
func (r *Reader) Mean(k *kind.Kind) int {
	if k == nil {
		return 2 * overhead
	}
	return max(int(r.sizes[k.Name].Load()), 2*overhead)
}

// Estimate returns the estimated memory of a read of resources of a kind. No read returns more
// than backend.MaxPageBytes.
func (r *Reader) Estimate(k *kind.Kind, resources int) int {
	return min(resources*r.Mean(k), backend.MaxPageBytes)
}

// Size returns the memory of resources; nil ones count 0.
func Size(resources []*backend.Resource) (n int) {
	for _, r := range resources {
		if r != nil {
			n += SizeOf(r)
		}
	}
	return n
}

// SizeOf returns the memory of a resource.
func SizeOf(r *backend.Resource) int { return overhead + len(r.Body) }
