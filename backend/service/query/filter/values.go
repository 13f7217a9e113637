package filter

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// The attributes without index rows of their own.
const (
	Name      = "name"
	Namespace = "namespace"
	CreatedAt = "createdAt"
	UpdatedAt = "updatedAt"
)

// Values are those of a resource's attributes: made of its body, or the rows that the index
// in memory has.
type Values struct {
	*backend.Resource
	rows []index.Row
	// kind and entry are those of the index in memory, if the resource is there.
	kind  *index.Kind
	entry *index.Entry
	// attribute was asked for last, and number is that of its index.
	attribute string
	number    int
	// encoded is memory for a value that no row has.
	encoded []byte
	// Compared counts the values that tests have compared with.
	Compared int
}

// Read makes v the values of a resource in the index; it keeps the count.
func (v *Values) Read(k *index.Kind, e *index.Entry) {
	if v.kind != k {
		v.kind, v.attribute = k, ""
	}
	v.Resource, v.entry = &e.Resource, e
}

// Has reports whether the resource has a value of an attribute, encoded, that is accepted.
// The value must not be kept.
func (v *Values) Has(attribute string, accepts func(value []byte) bool) bool {
	to := v.encoded[:0]
	switch attribute {
	case Name:
		v.encoded = backend.AppendString(to, v.Name)
		return accepts(v.encoded)
	case Namespace:
		v.encoded = backend.AppendString(to, v.Namespace)
		return v.Namespace != "" && accepts(v.encoded) // not of a GLOBAL kind
	case CreatedAt:
		v.encoded = kind.AppendTime(to, v.CreatedAt)
		return accepts(v.encoded)
	case UpdatedAt:
		v.encoded = kind.AppendTime(to, v.UpdatedAt)
		return accepts(v.encoded)
	}
	if v.entry != nil {
		if v.attribute != attribute {
			v.attribute, v.number = attribute, v.kind.Number(attribute)
		}
		return v.entry.Any(v.number, accepts)
	}
	for i := range v.rows {
		if v.rows[i].Index == attribute && accepts(v.rows[i].Value) {
			return true
		}
	}
	return false
}

// AppendPlace appends the place of the resource in the order of the names.
func (v *Values) AppendPlace(dst []byte) []byte {
	if v.entry != nil {
		return append(dst, v.entry.Place()...)
	}
	return backend.AppendString(backend.AppendString(dst, v.Namespace), v.Resource.Name)
}
