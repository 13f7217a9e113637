package filter

import (
	"bytes"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// The attributes that have no index rows.
const (
	Name      = "name"
	Namespace = "namespace"
	CreatedAt = "createdAt"
	UpdatedAt = "updatedAt"
)

// DeletionRequestedAt is the attribute whose value is the time at which the deletion of a resource was requested.
const DeletionRequestedAt = kind.DeletionIndex

// Values gives access to the values of a resource's attributes. The values come from the body of the resource, or from
// its rows in the index.
type Values struct {
	*backend.Resource
	rows []index.Row
	// kind and entry are set if the resource is in the index.
	kind  *index.Kind
	entry *index.Entry
	// attribute is the attribute whose values were read last. number is the number of its index.
	attribute string
	number    int
	// encoded is a buffer for a value that has no row.
	encoded []byte
	// Compared is the number of comparisons that must be charged to the budget.
	Compared int
}

// Read makes v give access to another resource of the index. It keeps Compared.
func (v *Values) Read(k *index.Kind, e *index.Entry) {
	if v.kind != k {
		v.kind, v.attribute = k, ""
	}
	v.Resource, v.entry = &e.Resource, e
}

// Has reports whether accepts returns true for any value of an attribute. Values are encoded as in index rows. accepts
// must not keep them.
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

// GroupKey is an attribute by whose values resources are grouped. With a Prefix, only values that begin with the prefix
// count, for example the values of one label.
type GroupKey struct {
	Attribute string
	Prefix    []byte
}

// The first byte of a key, for a resource without and with a value. See [Values.AppendKey].
const (
	KeyNull  = 0
	KeyValue = 1
)

// AppendKey appends the value that the resource has for a key. It appends KeyNull if there is no value, otherwise
// KeyValue and the value without the prefix, encoded as in index rows. If there are several values, it appends the
// first one.
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

// AppendPlace appends the encoded (namespace, name) of the resource.
func (v *Values) AppendPlace(dst []byte) []byte {
	if v.entry != nil {
		return append(dst, v.entry.Place()...)
	}
	return backend.AppendString(backend.AppendString(dst, v.Namespace), v.Resource.Name)
}
