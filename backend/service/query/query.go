// Package query reads resources: by their keys, by who refers to them, and page by
// page in an order. Kinds that are in memory are read by the trees that hold what a
// filter can match, others are scanned.
package query

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// query is what a connection consists of and in which order.
type query struct {
	kind *kind.Kind
	// asked is the namespace that the request names, and namespace the one that it is
	// about, as the filter may say; empty is all.
	asked, namespace string
	// reference and parent leave what refers to a resource by that path: an index
	// and a value of its rows. No reference keeps everything.
	reference string
	parent    []byte
	parentKey backend.Key
	// filter is what is asked for besides; nil keeps everything.
	filter Filter
	order  order
	// within bounds what is read of the range of the names.
	within bounds
	// names are those of the resources that the query may have, in order and each
	// once; nil for all. They are derived if the filter says them.
	names   []string
	derived bool
}

// Filter is a compiled filter with its canonical text, see [ParseFilter].
type Filter struct {
	all
	text string
}

func (r *Reader) query(k *kind.Kind, req *ListRequest, f Filter) (q query, err error) {
	q = query{kind: k, filter: f}
	if req.Namespace != nil {
		q.namespace = *req.Namespace
		if req.Parent == (Parent{}) && req.Names == nil { // else it is that of a resource
			if k.Scope == descriptor.Global {
				return q, failure.BadInput("namespace", "kind %s is GLOBAL: its resources have no namespace", k.Name)
			}
			var v kind.Violations
			v.Namespace("namespace", q.namespace)
			if err := v.Err(backend.Key{Kind: k.Name, Namespace: q.namespace}); err != nil {
				return q, err
			}
		}
	}
	if q.order, err = orderOf(k, req.OrderBy); err != nil {
		return q, err
	}
	if p := req.Parent; p != (Parent{}) {
		if k.Rows.Index(p.Reference) == nil {
			return q, failure.BadInput("parent", "kind %s has no reference %q", k.Name, failure.Shorten(p.Reference))
		}
		q.namespace, q.reference, q.parent, q.parentKey = p.Key.Namespace, p.Reference, backend.AppendString(nil, p.Key.Name), p.Key
	}
	if req.Names != nil {
		if q.namespace == "" && k.Scope != descriptor.Global {
			return q, failure.BadInput("namespace", "names need the namespace that they are in")
		}
		if len(req.Names) > MaxFilterValues {
			return q, failure.Limited("names", "more than %d names", MaxFilterValues)
		}
		q.names = inOrder(req.Names)
	}
	q.asked = q.namespace
	q.narrow()
	return q, nil
}

// inOrder are names in order and each once: the ones given, if they are so.
func inOrder(names []string) []string {
	for i := range names {
		if i > 0 && names[i-1] >= names[i] {
			names = slices.Clone(names)
			slices.Sort(names)
			return slices.Compact(names)
		}
	}
	return names
}

// refers says whether a store can tell what refers to the parent: it knows references to
// resources of the same namespace.
func (q *query) refers() bool {
	return q.reference != "" && (q.parentKey.Namespace != "" || q.kind.Scope == descriptor.Global)
}

// inNames says whether the order of the page is that of the names.
func (q *query) inNames() bool {
	return len(q.order) == 0 || q.order[0].Field == nameAttribute && (q.namespace != "" || q.kind.Scope == descriptor.Global)
}

// filtered says whether the query keeps less than its namespace has.
func (q *query) filtered() bool { return q.reference != "" || q.filter.all != nil }

// match says whether the query keeps a resource.
func (q *query) match(v *indexedResource) bool {
	if q.reference != "" && !v.has(q.reference, func(value []byte) bool { return bytes.Equal(value, q.parent) }) {
		return false
	}
	return q.filter.match(v)
}

// hash tells connections apart; cursors carry it. How a connection is read has no part in it.
func (q *query) hash() uint32 {
	text := q.filter.text
	if q.reference != "" {
		name, _, _ := backend.TakeString(q.parent) // it was made of a string
		text += fmt.Sprintf(" parent %q %q", q.reference, name)
	}
	if q.names != nil && !q.derived {
		names, _ := json.Marshal(q.names)               // strings always marshal
		text += `{"name":{"in":` + string(names) + `}}` // as the filter that says the same
	}
	h := fnv.New32a()
	for _, part := range []string{q.kind.Name, q.asked, text, q.order.text()} {
		_, _ = h.Write(backend.AppendString(nil, part))
	}
	return h.Sum32()
}

// interval is a part of the order. From is inclusive, the others exclusive; nil is open.
type interval struct{ after, before, from []byte }

func (in interval) holds(key []byte) bool {
	return (in.after == nil || string(key) > string(in.after)) &&
		(in.before == nil || string(key) < string(in.before)) &&
		(in.from == nil || string(key) >= string(in.from))
}

// keys are those of the names, as far as the interval has them.
func (q *query) keys(in interval) []backend.Key {
	keys := make([]backend.Key, 0, len(q.names))
	for _, name := range q.names {
		if len(q.order) == 0 && !in.holds(backend.OrderTuple(q.namespace, name)) {
			continue
		}
		keys = append(keys, backend.Key{Kind: q.kind.Name, Namespace: q.namespace, Name: name})
	}
	return keys
}

const cursorFormat = 1

// appendCursor appends a place in the order: base64url of a format byte, the
// query's hash and the key. It is the same for a resource whatever the page.
func appendCursor(dst []byte, hash uint32, key []byte) []byte {
	var space [128]byte
	b := binary.BigEndian.AppendUint32(append(space[:0], cursorFormat), hash)
	return base64.RawURLEncoding.AppendEncode(dst, append(b, key...))
}

// maxCursor bounds what is read as a cursor: order values and a key.
const maxCursor = 16 << 10

// bound reads a cursor of this query; nil and "" mean none.
func (q *query) bound(argument string, cursor *string) ([]byte, error) {
	if cursor == nil || *cursor == "" {
		return nil, nil // most have none: then nothing is made for it
	}
	return bound(argument, cursor, cursorOf{kind: q.kind.Name, hash: q.hash, check: q.order.check})
}

// cursorOf is whose cursors are read: a connection of resources of a kind, or of what is
// related to one.
type cursorOf struct {
	kind  string
	hash  func() uint32
	check func(key []byte) bool
}

// bound reads a cursor of a connection; nil and "" mean none.
func bound(argument string, cursor *string, of cursorOf) ([]byte, error) {
	if cursor == nil || *cursor == "" {
		return nil, nil
	}
	bad := &failure.Error{Code: failure.CodeCursorInvalid, Path: argument, Kind: of.kind, Message: argument + ": not a cursor of this connection; take it from pageInfo or an edge of the same field with the same arguments"}
	if len(*cursor) > maxCursor {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
	if err != nil || len(b) < 5 || b[0] != cursorFormat || binary.BigEndian.Uint32(b[1:]) != of.hash() || !of.check(b[5:]) {
		return nil, bad
	}
	return b[5:], nil
}
