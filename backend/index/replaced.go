package index

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// The maximum number and size of the replaced resources that are kept. The size is also limited to the maximum size of
// changedKeys.
const (
	maxReplaced      = 256
	maxReplacedBytes = 4 << 20
)

// replaced is a resource that a change has replaced. by is the revision of the change.
type replaced struct {
	by    backend.Revision
	entry *Entry
}

// lacksBefore reports whether the log entry of a change lacks the previous state.
func lacksBefore(e *backend.Event) bool {
	return e.Type == backend.Modified && (e.Change == nil || e.Before == nil)
}

// keepReplaced keeps the resource that an event replaces. It must be called before the trees change. The caller holds
// mu.
func (x *Index) keepReplaced(k *kindIndex, e *backend.Event) {
	found, known := k.names.get(string(backend.OrderTuple(e.Resource.Namespace, e.Resource.Name)))
	if k.state != serving || !known || found.Err != nil || found.Resource.Revision.Compare(e.Revision) >= 0 {
		return
	}
	x.replaced = append(x.replaced, replaced{e.Revision, found})
	x.replacedBytes += int64(found.bytes)
	for len(x.replaced) > maxReplaced || x.replacedBytes > min(maxReplacedBytes, x.changed.limit) {
		x.replacedBytes -= int64(x.replaced[0].entry.bytes)
		x.replaced = slices.Delete(x.replaced, 0, 1)
	}
}

// Replaced returns the resource that a change has replaced, if the change is recent and its log entry lacks the
// previous state; otherwise nil.
func (x *Index) Replaced(e *backend.Event) *Entry {
	if x == nil || !lacksBefore(e) {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, one := range x.replaced {
		if one.by == e.Revision && one.entry.Resource.Key == e.Resource.Key {
			return one.entry
		}
	}
	return nil
}
