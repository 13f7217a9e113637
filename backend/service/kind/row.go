package kind

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// The indexes that every kind has. Their values are
//   - LabelIndex: the key and value of each label
//   - ConditionIndex: the type and status of each condition
//   - ReasonIndex: the type and reason of each condition
//   - DeletionIndex: the time at which the deletion was requested, for resources that wait to be deleted
const (
	LabelIndex     = "labels"
	ConditionIndex = "conditions"
	ReasonIndex    = "reasons"
	DeletionIndex  = "deletionRequestedAt"
)

// MaxIndexChars is the maximum number of characters of an indexed string. A longer string has no index row. Only a
// status can have longer strings.
const MaxIndexChars = 256

// maxIndexBytes is the maximum number of bytes of an indexed string, and of the type and status of a condition.
const maxIndexBytes = 1024

// ConditionType returns the type of a condition that was decoded from a status.
func ConditionType(condition any) string { return ConditionText(condition, "type") }

// ConditionText returns a string field of a condition that was decoded from a status; "" if it is absent.
func ConditionText(condition any, field string) string {
	c, _ := condition.(map[string]any)
	text, _ := c[field].(string)
	return text
}

// Definition describes how the index in memory indexes resources of the kind.
func (k *Kind) Definition() index.Definition {
	names, sortable := k.Rows.Indexes()
	if k.Scope != descriptor.Global {
		names = append(names, index.NameIndex)
	}
	arenas := sync.Pool{New: func() any { return new(body.Arena) }}
	return index.Definition{
		Name: k.Name, Indexes: names, Sortable: sortable, ByCreation: []string{LabelIndex}, Rows: k.Rows.Of,
		Keep: func(r *backend.Resource, more func(*body.Body) []byte) (body.Body, string, int, error) {
			a := arenas.Get().(*body.Arena)
			defer arenas.Put(a)
			return a.Keep(k.Body, r, more)
		},
	}
}

// Rows extracts index rows and references from resources of a kind.
type Rows struct {
	shape      *body.Shape
	indexes    []indexed
	references []referenceIndex
	// conditions are the slots of status.conditions and of type in a condition; nil if the kind has no conditions.
	// status and reason are the slots of these fields in a condition; -1 if a condition does not have the field.
	conditions     []int
	status, reason int
}

// indexed is a field with an index: a [descriptor.FilterableField] or a reference.
type indexed struct {
	path  string
	steps []string
	// slots are the positions of the steps in stored bodies.
	slots []int
	Field *descriptor.Field
	// Sortable reports whether results can be ordered by the field.
	Sortable bool
	// Many reports whether a resource may have several values of the field.
	Many bool
}

// compileRows finds the indexed fields and references of a kind in shape, which is the shape of its stored bodies.
func compileRows(k *descriptor.Kind, shape *body.Shape) (*Rows, error) {
	d := &Rows{shape: shape}
	add := func(path string, sortable bool) error {
		if d.Index(path) != nil {
			return nil
		}
		f, many := k.FieldAt(path)
		if f == nil || f.Type == descriptor.TypeObject || f.Type == descriptor.TypeMap {
			return fmt.Errorf("index %s: no scalar field is there", path)
		}
		slots, _, err := shape.Find(path)
		if err != nil {
			return fmt.Errorf("index: %w", err)
		}
		d.indexes = append(
			d.indexes,
			indexed{
				path:     path,
				steps:    strings.Split(path, "."),
				slots:    slots,
				Field:    f,
				Sortable: sortable,
				Many:     many,
			},
		)
		return nil
	}
	for _, i := range k.FilterableFields {
		if err := add(i.Path, i.Sortable); err != nil {
			return nil, err
		}
	}
	for _, r := range k.References {
		if err := add(r.Path, false); err != nil {
			return nil, err
		}
		d.references = append(d.references, referenceIndex{Reference: r})
	}
	return d, d.findConditions(k)
}

// findConditions sets the slots of conditions, if the kind has conditions.
func (d *Rows) findConditions(k *descriptor.Kind) error {
	if k.Conditions() == nil {
		return nil
	}
	typ, _, err := d.shape.Find("status." + ConditionIndex + ".type")
	if err != nil {
		return err
	}
	condition := d.shape.Fields[typ[0]].Shape.Fields[typ[1]].Shape
	d.conditions, d.reason = typ[1:], -1
	d.status, _ = condition.Slot("status")
	if reason, ok := condition.Slot("reason"); ok {
		d.reason = reason
	}
	return nil
}

// Indexes returns the names of all indexes, and the names of the indexes by which results can be ordered.
func (d *Rows) Indexes() (all, sortable []string) {
	all = []string{LabelIndex, ConditionIndex, ReasonIndex, DeletionIndex}
	for i := range d.indexes {
		all = append(all, d.indexes[i].path)
		if d.indexes[i].Sortable {
			sortable = append(sortable, d.indexes[i].path)
		}
	}
	return all, sortable
}

// Index returns the index with a path; nil if there is none.
func (d *Rows) Index(path string) *indexed {
	for i := range d.indexes {
		if d.indexes[i].path == path {
			return &d.indexes[i]
		}
	}
	return nil
}

// excessRows describes a body that has more index rows than a resource may have.
type excessRows struct {
	rows int
	// index is the index with the most rows. inIndex is the number of these rows.
	index   string
	inIndex int
}

// excessRowsOf returns an excessRows if a body has too many index rows, otherwise nil. The stored resource old may
// already have too many, because fields became filterable later. Then the body is accepted if no index gets more rows.
func (k *Kind) excessRowsOf(key backend.Key, next []byte, old *backend.Resource) *excessRows {
	b, err := k.Body.Read(&backend.Resource{Key: key, Body: next})
	if err != nil {
		return nil // the index has no rows of it
	}
	rows := distinct(k.Rows.Of(b))
	if len(rows) <= index.MaxRows {
		return nil
	}
	count := countRows(rows)
	if old != nil {
		if b, err := k.Body.Read(old); err == nil {
			was := distinct(k.Rows.Of(b))
			if len(was) > index.MaxRows && !moreRows(count, countRows(was)) {
				return nil
			}
		}
	}
	most := rows[0].Index
	for name, n := range count {
		if n > count[most] || n == count[most] && name < most {
			most = name
		}
	}
	return &excessRows{rows: len(rows), index: most, inIndex: count[most]}
}

// refuse returns the error for the caller. It names the field of the index with the most rows.
func (e *excessRows) refuse(k *Kind, names failure.FieldNames) *failure.Error {
	var at *failure.Path
	switch e.index {
	case LabelIndex:
		at = failure.At("metadata").Name("labels")
	case ConditionIndex, ReasonIndex:
		at = failure.At("status").Name(ConditionIndex)
	default:
		at = k.Path(e.index)
	}
	path := at.Text(names)
	return &failure.Error{
		Code: failure.CodeLimitExceeded, Path: path, Limit: index.MaxRows,
		Message: fmt.Sprintf("%s: the resource has %d different values in indexed fields, %d of them here; at most %d are accepted", path, e.rows, e.inIndex, index.MaxRows),
	}
}

// distinct sorts rows in place and removes duplicates.
func distinct(rows []index.Row) []index.Row {
	compare := func(a, b index.Row) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), bytes.Compare(a.Value, b.Value))
	}
	slices.SortFunc(rows, compare)
	return slices.CompactFunc(rows, func(a, b index.Row) bool { return compare(a, b) == 0 })
}

// countRows returns the number of rows in each index.
func countRows(rows []index.Row) map[string]int {
	out := map[string]int{}
	for _, r := range rows {
		out[r.Index]++
	}
	return out
}

// moreRows reports whether any index has more rows than before. It ignores labels, whose number has a separate limit.
func moreRows(count, before map[string]int) bool {
	for name, n := range count {
		if n > before[name] && name != LabelIndex {
			return true
		}
	}
	return false
}

// Pair returns the index value of a label (key, value), or of a condition (type, status).
func Pair(a, b string) []byte { return appendPair(nil, a, b) }

func appendPair(dst []byte, a, b string) []byte {
	return backend.AppendString(backend.AppendString(dst, a), b)
}

// AppendValue appends the index encoding of v. Comparing the bytes of two encodings orders the values: strings by their
// bytes, enum values in the order of their declaration, numbers and times by value. AppendValue returns false if v is
// not indexed.
func AppendValue(dst []byte, f *descriptor.Field, v any) ([]byte, bool) {
	switch v := v.(type) {
	case bool:
		return backend.AppendBool(dst, v), true
	case json.Number:
		return appendNumber(dst, f, v)
	case string:
		if f.Enum != nil {
			i := slices.IndexFunc(f.Enum.Values, func(e descriptor.EnumValue) bool { return e.Stored == v })
			return backend.AppendInt(dst, int64(i)), i >= 0
		}
		if f.Type == descriptor.TypeTime {
			t, err := descriptor.ParseTime(v)
			return AppendTime(dst, t), err == nil
		}
		if len(v) > maxIndexBytes || utf8.RuneCountInString(v) > MaxIndexChars {
			return dst, false
		}
		return backend.AppendString(dst, v), true
	}
	return dst, false
}

// AppendTime appends a time as nanoseconds since 1970. A time before 1677 or after 2262 becomes the first or the last
// time that can be expressed.
func AppendTime(dst []byte, t time.Time) []byte {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	switch {
	case t.Before(first):
		t = first
	case t.After(last):
		t = last
	}
	return backend.AppendInt(dst, t.UnixNano())
}

// DecodeValue decodes an encoding by [AppendValue] to text. It returns the API name of an enum value, a time in the
// form of RFC 3339, and a number as in JSON.
func DecodeValue(f *descriptor.Field, place []byte) (string, error) {
	if f.Type == descriptor.TypeBoolean {
		b, _, err := backend.TakeBool(place)
		return strconv.FormatBool(b), err
	}
	if f.Type == descriptor.TypeString {
		s, _, err := backend.TakeString(place)
		return s, err
	}
	n, _, err := backend.TakeInt(place)
	switch {
	case err != nil:
		return "", err
	case f.Type == descriptor.TypeTime:
		return time.Unix(0, n).UTC().Format(time.RFC3339Nano), nil
	case f.Enum != nil && n >= 0 && int(n) < len(f.Enum.Values):
		return f.Enum.Values[n].Name, nil
	case f.Type == descriptor.TypeFloat:
		if n < 0 {
			n ^= math.MaxInt64
		}
		return strconv.FormatFloat(math.Float64frombits(uint64(n)), 'g', -1, 64), nil
	}
	return strconv.FormatInt(n, 10), nil
}

func appendNumber(dst []byte, f *descriptor.Field, n json.Number) ([]byte, bool) {
	x, err := n.Float64()
	if err != nil || math.IsNaN(x) {
		return dst, false
	}
	if f.Type != descriptor.TypeFloat {
		return backend.AppendInt(dst, int64(x)), true
	}
	// With the bits of negative numbers flipped, the bits of floats have the same order as signed integers.
	bits := int64(math.Float64bits(x + 0))
	if bits < 0 {
		bits ^= math.MaxInt64
	}
	return backend.AppendInt(dst, bits), true
}
