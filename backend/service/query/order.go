package query

import (
	"bytes"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// MaxOrders is the most criteria of an order.
const MaxOrders = 5

// What begins a criterion's part of a key. Neither these nor their inversions
// are 0x00 or 0xFF, which have a meaning behind the end of a string.
const (
	isNull   = 0x01
	hasValue = 0x02
)

// order is a compiled order; the empty one is by (namespace, name).
type order []Order

func orderOf(k *kind.Kind, orders []Order) (order, error) {
	if len(orders) > MaxOrders {
		return nil, failure.Limited("orderBy", "more than %d criteria", MaxOrders)
	}
	for i, o := range orders {
		switch o.Field {
		case nameAttribute, namespaceAttribute, createdAttribute, updatedAttribute:
			continue
		}
		if idx := k.Rows.Index(o.Field); idx == nil || !idx.Sortable {
			return nil, failure.BadInput("orderBy", "orderBy[%d]: %q is not a sortable field of kind %s", i, failure.Shorten(o.Field), k.Name)
		}
	}
	return order(orders), nil
}

// key is the place of a resource in the order, as bytes that compare like it:
// for each criterion whether there is a value and the value, inverted if
// descending, then (namespace, name). So nulls come first, and last if
// descending, and equal values are told apart the same way in both directions.
func (o order) key(v *indexedResource) []byte { return o.appendKey(nil, v) }

// appendKey appends the key of a resource.
func (o order) appendKey(dst []byte, v *indexedResource) []byte {
	for _, c := range o {
		begin := len(dst)
		found := v.has(c.Field, func(value []byte) bool {
			dst = append(append(dst, hasValue), value...)
			return true
		})
		if !found {
			dst = append(dst, isNull)
		}
		if c.Descending {
			for i := begin; i < len(dst); i++ {
				dst[i] = ^dst[i]
			}
		}
	}
	if v.entry != nil {
		return append(dst, v.entry.Place()...)
	}
	return backend.AppendString(backend.AppendString(dst, v.Namespace), v.Name)
}

// value is that of the first criterion in a key that has passed [order.check]; nil if it is null.
func (o Order) value(key []byte) []byte {
	if o.Descending {
		key = invert(key)
	}
	if key[0] == isNull {
		return nil
	}
	rest, err := backend.SkipElement(key[1:])
	if err != nil {
		return nil
	}
	return key[1 : len(key)-len(rest)]
}

// place is that of the resource in a key that has passed [order.check]; nil of nil.
func (o order) place(key []byte) []byte {
	for _, c := range o {
		if key == nil {
			return nil
		}
		skip := 1
		if value := c.value(key); value != nil {
			skip += len(value)
		}
		key = key[skip:]
	}
	return key
}

// text is the order in a form that tells it from others.
func (o order) text() string {
	return fmt.Sprint([]Order(o))
}

// check says whether b has the form of a key of this order.
func (o order) check(b []byte) bool {
	for _, c := range o {
		if len(b) == 0 {
			return false
		}
		if c.Descending {
			b = invert(b)
		}
		switch b[0] {
		case isNull:
			b = b[1:]
		case hasValue:
			rest, err := backend.SkipElement(b[1:])
			if err != nil {
				return false
			}
			b = rest
		default:
			return false
		}
		if c.Descending {
			b = invert(b)
		}
	}
	_, rest, err := backend.TakeString(b)
	if err != nil {
		return false
	}
	_, rest, err = backend.TakeString(rest)
	return err == nil && len(rest) == 0
}

func invert(b []byte) []byte {
	out := bytes.Clone(b)
	for i := range out {
		out[i] = ^out[i]
	}
	return out
}
