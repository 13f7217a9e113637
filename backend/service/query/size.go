package query

import (
	"context"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// StoredBytes returns the total size of a kind's stored bodies in bytes. known is false if the caller may not LIST and
// GET all resources of the kind. It is also false if the kind is not in memory, because stores do not keep the total.
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
