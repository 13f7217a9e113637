package plan

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// MaxCriteria is the most criteria of an order.
const MaxCriteria = 5

// What begins a criterion's part of a key. Neither these nor their inversions
// are 0x00 or 0xFF, which have a meaning behind the end of a string.
const (
	isNull   = 0x01
	hasValue = 0x02
)

// CheckCriteria refuses an order of more than [MaxCriteria] criteria.
func CheckCriteria(criteria int) error {
	if criteria > MaxCriteria {
		return failure.Limited("orderBy", "more than %d criteria", MaxCriteria)
	}
	return nil
}

// Criterion is one criterion of an order. Nulls come first, and last if descending.
type Criterion struct {
	// Field is "name", "namespace", "createdAt", "updatedAt" or the path of a sortable index.
	Field      string
	Descending bool
}

// Order goes before the order of (namespace, name), which the empty one is.
type Order []Criterion

// Check refuses an order that a kind does not have.
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
			return failure.BadInput("orderBy", "orderBy[%d]: %q is not a sortable field of kind %s", i, failure.Shorten(c.Field), k.Name)
		}
	}
	return nil
}

// AppendKey appends the key of a resource: for each criterion whether there is a value and
// the value, inverted if descending, then (namespace, name). So nulls come first, and last
// if descending, and equal values are told apart the same way in both directions.
func (o Order) AppendKey(dst []byte, v *filter.Values) []byte {
	for _, c := range o {
		begin := len(dst)
		found := v.Has(c.Field, func(value []byte) bool {
			dst = append(append(dst, hasValue), value...)
			return true
		})
		if !found {
			dst = append(dst, isNull)
		}
		if c.Descending {
			invert(dst[begin:])
		}
	}
	return v.AppendPlace(dst)
}

// take splits the value of the criterion off a key; nil for null. ok is false if the key
// does not begin with one.
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
	case isNull:
		return nil, key[1:], true
	case hasValue:
		behind, err := backend.SkipElement(whole[1:])
		n := len(whole) - len(behind)
		return whole[1:n:n], key[n:], err == nil
	}
	return nil, nil, false
}

// Split returns the value of the first criterion in a key, nil if it is null, and the place
// of the resource. The key has passed a [Cursor]; of nil both are nil.
func (o Order) Split(key []byte) (value, place []byte) {
	for i, c := range o {
		if key == nil {
			break
		}
		v, rest, _ := c.take(key)
		if key = rest; i == 0 {
			value = v
		}
	}
	return value, key
}

// IsKey reports whether b has the form of a key of the order.
func (o Order) IsKey(b []byte) bool {
	for _, c := range o {
		var ok bool
		if _, b, ok = c.take(b); !ok {
			return false
		}
	}
	_, rest, err := backend.TakeString(b)
	if err != nil {
		return false
	}
	_, rest, err = backend.TakeString(rest)
	return err == nil && len(rest) == 0
}

// String tells the order from others.
func (o Order) String() string { return fmt.Sprint([]Criterion(o)) }

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// Interval is a part of an order. From is inclusive, the others exclusive; nil is open.
type Interval struct{ After, Before, From []byte }

// Holds reports whether a key is in the interval.
func (in Interval) Holds(key []byte) bool {
	return (in.After == nil || string(key) > string(in.After)) &&
		(in.Before == nil || string(key) < string(in.Before)) &&
		(in.From == nil || string(key) >= string(in.From))
}

// Past reports whether a key that the interval does not hold lies behind it, for who reads
// forward or backward.
func (in Interval) Past(key []byte, backward bool) bool {
	if backward {
		return in.After != nil && string(key) <= string(in.After) || in.From != nil && string(key) < string(in.From)
	}
	return in.Before != nil && string(key) >= string(in.Before)
}

const cursorFormat = 1

// maxCursor bounds what is read as a cursor: order values and a key.
const maxCursor = 16 << 10

// AppendCursor appends a key as a cursor: base64url of a format byte, the hash of the
// connection and the key. It is the same for a resource whatever the page.
func AppendCursor(dst []byte, hash uint32, key []byte) []byte {
	var space [128]byte
	b := binary.BigEndian.AppendUint32(append(space[:0], cursorFormat), hash)
	return base64.RawURLEncoding.AppendEncode(dst, append(b, key...))
}

// Cursors are those of a connection.
type Cursors struct {
	// Kind of the resources.
	Kind string
	// Hash of the connection, and IsKey reports whether a key is one of it.
	Hash  func() uint32
	IsKey func(key []byte) bool
}

// Key returns the key of a cursor; nil and "" mean none. Argument names it in an error.
func (c Cursors) Key(argument string, cursor *string) ([]byte, error) {
	if cursor == nil || *cursor == "" {
		return nil, nil
	}
	bad := &failure.Error{Code: failure.CodeCursorInvalid, Path: argument, Kind: c.Kind, Message: argument + ": not a cursor of this connection; take it from pageInfo or an edge of the same field with the same arguments"}
	if len(*cursor) > maxCursor {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
	if err != nil || len(b) < 5 || b[0] != cursorFormat || binary.BigEndian.Uint32(b[1:]) != c.Hash() || !c.IsKey(b[5:]) {
		return nil, bad
	}
	return b[5:], nil
}
