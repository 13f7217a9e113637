package change

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// attribute is one of a kind's indexes, of which changes have values in their rows.
type attribute struct {
	kind  *kind.Kind
	index string
}

var _ hub.Attribute = attribute{}

// Values are those of the rows before and after. They are not known if one of the two was
// made by another definition of indexes: whoever is offered the change judges it.
func (a attribute) Values(e *backend.Event) (values [][]byte, all bool) {
	if e.Resource.Kind != a.kind.Name {
		return nil, false
	}
	if e.Resource.Fingerprint != a.kind.Rows.Fingerprint || e.Type == backend.Modified && e.FingerprintBefore != a.kind.Rows.Fingerprint {
		return nil, true
	}
	values = a.add(values, e.Resource.Rows)
	return a.add(values, e.RowsBefore), false
}

func (a attribute) add(values [][]byte, rows []backend.Row) [][]byte {
	for i := range rows {
		if v := rows[i].Value; rows[i].Index == a.index && !slices.ContainsFunc(values, func(known []byte) bool { return string(known) == string(v) }) {
			values = append(values, v)
		}
	}
	return values
}

// lookup finds the streams of a scope by what its filter wants: so an event is not judged
// by a thousand filters that differ in the value that they want. It is nil where the filter
// wants no certain values.
func (s *scope) lookup() *hub.Lookup {
	if len(s.kinds) != 1 || s.filter == nil {
		return nil
	}
	k := s.kinds[0]
	filter := s.filter[k.Name]
	index, values, ok := filter.Anchor()
	if !ok {
		return nil
	}
	return &hub.Lookup{By: attribute{kind: k, index: index}, Values: values}
}
