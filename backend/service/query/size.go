package query

import (
	"context"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// StoredBytes returns how many bytes the stored bodies of a kind's resources have. They are not known if the kind is
// not in memory, or if the caller may not LIST and GET all of its resources. The store is not asked: it has no sum of
// them, and a kind that is not in memory is one of which nobody wants to read every resource.
func (r *Reader) StoredBytes(ctx context.Context, kindName string) (bytes int64, known bool, err error) {
	k, err := r.kinds.Find(kindName)
	if err != nil {
		return 0, false, err
	}
	rights, err := r.Rights(ctx)
	if err != nil {
		return 0, false, err
	}
	if !rights.All() && !rights.Scope(k.Kind, descriptor.VerbList, descriptor.VerbGet).All() {
		return 0, false, nil
	}
	view := r.view(ctx)
	served, known := view.Kind(k.Name)
	if !known {
		return 0, false, nil
	}
	return served.BodyBytes(), true, nil
}
