package filter

import (
	"bytes"

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

// DeletionRequestedAt is the attribute of resources that wait to be deleted.
const DeletionRequestedAt = kind.DeletionIndex

// Values are the values of a resource's attributes, from its body or from the rows of the index
// in memory.
type Values struct {
	*backend.Resource
	rows []index.Row
	// kind and entry are set if the resource is in the index in memory.
	kind  *index.Kind
	entry *index.Entry
	// attribute is the last one asked for, and number the number of its index.
	attribute string
	number    int
	// encoded is a buffer for a value that is not in a row.
	encoded []byte
	// Compared counts comparisons, for the budget.
	Compared int
}

// Read sets v to the values of a resource in the index. Compared is not reset.
func (v *Values) Read(k *index.Kind, e *index.Entry) {
	if v.kind != k {
		v.kind, v.attribute = k, ""
	}
	v.Resource, v.entry = &e.Resource, e
}

// Has reports whether accepts returns true for one of the encoded values of an attribute.
// accepts must not keep the value.
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

// GroupKey is an attribute by whose values resources are grouped. It may be a part of an attribute: the
// values that begin with Prefix, such as the values of one label.
type GroupKey struct {
	Attribute string
	Prefix    []byte
}

// The first byte of what [Values.AppendKey] appends.
const (
	KeyNull  = 0
	KeyValue = 1
)

// AppendKey appends the first value of a key: KeyNull if there is none, or KeyValue and the value
// without the prefix, encoded as in index rows.
func (v *Values) AppendKey(dst []byte, k GroupKey) []byte {
	v.Compared++
	found := v.Has(k.Attribute, func(value []byte) bool {
		if !bytes.HasPrefix(value, k.Prefix) {
			return false
		}
		dst = append(append(dst, KeyValue), value[len(k.Prefix):]...)
		return true
	})
	if !found {
		dst = append(dst, KeyNull)
	}
	return dst
}

// AppendPlace appends the place of the resource in the order of the names.
func (v *Values) AppendPlace(dst []byte) []byte {
	if v.entry != nil {
		return append(dst, v.entry.Place()...)
	}
	return backend.AppendString(backend.AppendString(dst, v.Namespace), v.Resource.Name)
}
