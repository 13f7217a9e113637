package kind

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
)

// smallBody is the size of a body that cannot have more index rows than a resource may.
const smallBody = 2 * index.MaxRows

// Put returns what stores the state of a resource: in the place of old, which can be read,
// unless that is nil. Its references stay as they are stored.
func (st *State) Put(k *Kind, key backend.Key, old *backend.Resource) (put backend.Put, err error) {
	finalizers := len(st.Meta.Finalizers)
	put = backend.Put{ExpiresAt: st.ExpiresAt, Finalizers: &finalizers}
	if put.Body, err = st.Encode(k); err != nil {
		return put, err
	}
	if len(put.Body) > smallBody {
		if err := k.checkRows(key, put.Body, old); err != nil {
			return put, err
		}
	}
	if old != nil {
		put.UID, put.Deleting, put.Change = old.UID, old.Deleting, k.ChangeOf(old.Body, put.Body)
	}
	return put, nil
}
