package plan

import (
	"bytes"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// MaxCriteria is the maximum number of criteria of an order.
const MaxCriteria = 5

// The first byte of a criterion's part of a sort key. Both bytes and their complements differ from 0x00 and 0xFF, which
// end strings.
const (
	tagNull  = 0x01
	tagValue = 0x02
)

// CheckCriteria returns an error if an order has more than [MaxCriteria] criteria.
func CheckCriteria(criteria int) error {
	if criteria > MaxCriteria {
		return failure.Limited("orderBy", "more than %d criteria", MaxCriteria)
	}
	return nil
}

// Criterion is a criterion of an order. Resources without a value come first in ascending order and last in descending
// order.
type Criterion struct {
	// Field is "name", "namespace", "createdAt", "updatedAt", or the path of a sortable index.
	Field      string
	Descending bool
}

// Order is a list of criteria. Resources that are equal by all of them are ordered by (namespace, name), ascending. An
// empty Order orders by (namespace, name).
type Order []Criterion

// Check returns an error if resources of k cannot be ordered by o.
func (o Order) Check(k *kind.Kind) error {
	if err := CheckCriteria(len(o)); err != nil {
		return err
	}
	for i, c := range o {
		switch c.Field {
		case filter.Name, filter.Namespace, filter.CreatedAt, filter.UpdatedAt:
			continue
		}
		if idx := k.Rows.Index(c.Field); idx == nil || !idx.Sortable {
			return failure.BadInput(
				"orderBy", "orderBy[%d]: %q is not a sortable field of kind %s", i, failure.Shorten(c.Field), k.Name,
			)
		}
	}
	return nil
}

// AppendKey appends the sort key of a resource. For each criterion the key has a tag and the value, inverted if the
// criterion descends; (namespace, name) follows. The bytes of the keys have the order of the resources.
func (o Order) AppendKey(dst []byte, v *filter.Values) []byte {
	for _, c := range o {
		begin := len(dst)
		found := v.Has(c.Field, func(value []byte) bool {
			dst = append(append(dst, tagValue), value...)
			return true
		})
		if !found {
			dst = append(dst, tagNull)
		}
		if c.Descending {
			invert(dst[begin:])
		}
	}
	return v.AppendPlace(dst)
}

// take splits the part of a criterion off a sort key. value is nil if the resource has no value. ok is false if the key
// is malformed.
func (c Criterion) take(key []byte) (value, rest []byte, ok bool) {
	if len(key) == 0 {
		return nil, nil, false
	}
	whole := key
	if c.Descending {
		whole = bytes.Clone(key)
		invert(whole)
	}
	switch whole[0] {
	case tagNull:
		return nil, key[1:], true
	case tagValue:
		behind, err := backend.SkipElement(whole[1:])
		n := len(whole) - len(behind)
		return whole[1:n:n], key[n:], err == nil
	}
	return nil, nil, false
}

// Split returns the value of the first criterion in a sort key and the place of the resource. The value is nil if the
// key has none. key must satisfy IsKey or be nil. For a nil key both results are nil.
func (o Order) Split(key []byte) (value, place []byte) {
	for i, c := range o {
		if key == nil {
			break
		}
		v, rest, _ := c.take(key)
		key = rest
		if i == 0 {
			value = v
		}
	}
	return value, key
}

// IsKey reports whether b has the form of a sort key of the order.
func (o Order) IsKey(b []byte) bool {
	for _, c := range o {
		var ok bool
		_, b, ok = c.take(b)
		if !ok {
			return false
		}
	}
	for range 2 { // namespace and name
		var err error
		if _, b, err = backend.TakeString(b); err != nil {
			return false
		}
	}
	return len(b) == 0
}

// String returns a text that differs for different orders.
func (o Order) String() string { return fmt.Sprint([]Criterion(o)) }

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// Interval is an interval of sort keys. From is inclusive, After and Before are exclusive; nil means no bound.
type Interval struct{ After, Before, From []byte }

// Contains reports whether the interval contains a key.
func (in Interval) Contains(key []byte) bool {
	return (in.After == nil || string(key) > string(in.After)) &&
		(in.Before == nil || string(key) < string(in.Before)) &&
		(in.From == nil || string(key) >= string(in.From))
}

// Past reports whether a key lies beyond the end of the interval in the direction of reading. The key must be outside
// the interval.
func (in Interval) Past(key []byte, backward bool) bool {
	if backward {
		return in.After != nil && string(key) <= string(in.After) || in.From != nil && string(key) < string(in.From)
	}
	return in.Before != nil && string(key) >= string(in.Before)
}
