package change

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// attribute makes an index of a kind an attribute of changes, by which the hub finds the streams that a change concerns
// (see hub.Lookup). The attribute's values for a change are the values in the index rows of the resource.
type attribute struct {
	cache *changeCache
	kind  *kind.Kind
	index string
}

var _ hub.Attribute = attribute{}

// Values returns the values of the index rows before and after a change. all is true if one of the two states is
// unknown. The change is then offered to all streams.
func (a attribute) Values(e *backend.Event) (values [][]byte, all bool) {
	if e.Resource.Kind != a.kind.Name {
		return nil, false
	}
	before, after := a.cache.statesOf(a.kind, e)
	if before.unknown || after.unknown {
		return nil, true
	}
	return a.add(a.add(nil, after.rows), before.rows), false
}

func (a attribute) add(values [][]byte, rows []index.Row) [][]byte {
	for i := range rows {
		if v := rows[i].Value; rows[i].Index == a.index &&
			!slices.ContainsFunc(values, func(known []byte) bool { return string(known) == string(v) }) {
			values = append(values, v)
		}
	}
	return values
}

// lookup returns the values that the filter of the scope requires. With these the hub finds the streams that a change
// concerns without testing each filter. lookup returns nil if the scope has several kinds or no filter, or if the
// filter does not require particular values.
func (s *scope) lookup() *hub.Lookup {
	if len(s.kinds) != 1 || s.filter == nil {
		return nil
	}
	k := s.kinds[0]
	filter := s.filter[k.Name]
	name, values, ok := filter.Anchor()
	if !ok {
		return nil
	}
	return &hub.Lookup{By: attribute{cache: s.cache, kind: k, index: name}, Values: values}
}
