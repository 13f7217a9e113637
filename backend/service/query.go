package service

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// query is what a connection consists of and in which order.
type query struct {
	kind      *kind
	namespace string
	filter    expr // nil keeps everything
	order     order
	// run is the run of index rows to read, nil for the range of the names.
	run *candidate
	// whole says that the run holds just what the filter keeps.
	whole bool
	// names are those of the resources that the query may have, in order and each
	// once; nil for all. There is no run then.
	names []string
	// hash tells connections apart; cursors carry it.
	hash uint32
}

func (s *Service) query(ctx context.Context, k *kind, req ListRequest) (*query, error) {
	q := &query{kind: k}
	if req.Namespace != nil {
		var v violations
		checkNamespace(&v, "namespace", *req.Namespace)
		if err := v.err(backend.Key{Kind: k.Name, Namespace: *req.Namespace}); err != nil {
			return nil, err
		}
		q.namespace = *req.Namespace
	}
	filter, canonical, err := k.filter(req.Filter)
	if err != nil {
		return nil, err
	}
	if q.order, err = k.order(req.OrderBy); err != nil {
		return nil, err
	}
	conditions := all{}
	if p := req.Parent; p != nil {
		if k.index(p.Reference) == nil {
			return nil, badInput("parent", "kind %s has no reference %q", k.Name, shorten(p.Reference))
		}
		q.namespace = p.Key.Namespace
		conditions = append(conditions, test{attribute: p.Reference, op: "eq", values: [][]byte{backend.AppendString(nil, p.Key.Name)}})
		canonical += fmt.Sprintf(" parent %q %q", p.Reference, p.Key.Name)
	}
	if filter != nil {
		conditions = append(conditions, filter)
	}
	if req.Names != nil {
		if q.namespace == "" && k.Scope != backend.Global {
			return nil, badInput("namespace", "names need the namespace that they are in")
		}
		if len(req.Names) > MaxFilterValues {
			return nil, limited("names", "more than %d names", MaxFilterValues)
		}
		q.names = append([]string{}, req.Names...) // never nil
		slices.Sort(q.names)
		q.names = slices.Compact(q.names)
		text, err := json.Marshal(q.names)
		if err != nil {
			return nil, err
		}
		canonical += `{"name":{"in":` + string(text) + `}}` // as the filter that says the same
	}
	if len(conditions) > 0 {
		q.filter = conditions
		if run, ok := conditions.candidate(); ok && q.names == nil && s.indexed(ctx, k) {
			q.run = &run
			q.whole = run.exact && len(conditions) == 1 && conditions.isTest()
		}
	}
	h := fnv.New32a()
	for _, part := range []string{k.Name, q.namespace, canonical, q.order.text()} {
		_, _ = h.Write(backend.AppendString(nil, part))
	}
	q.hash = h.Sum32()
	return q, nil
}

// interval is a part of the order. From is inclusive, the others exclusive; nil is open.
type interval struct{ after, before, from []byte }

func (in interval) holds(key []byte) bool {
	return (in.after == nil || string(key) > string(in.after)) &&
		(in.before == nil || string(key) < string(in.before)) &&
		(in.from == nil || string(key) >= string(in.from))
}

// streams says whether the source is read in the order of the query.
func (q *query) streams() bool { return len(q.order) == 0 && (q.run == nil || q.run.exact) }

// keys are those of the names, as far as the interval has them.
func (q *query) keys(in interval) []backend.Key {
	keys := make([]backend.Key, 0, len(q.names))
	for _, name := range q.names {
		if q.streams() && !in.holds(backend.OrderTuple(q.namespace, name)) {
			continue
		}
		keys = append(keys, backend.Key{Kind: q.kind.Name, Namespace: q.namespace, Name: name})
	}
	return keys
}

// repeats says whether the source may hold a resource more than once.
func (q *query) repeats() bool {
	if q.run == nil || q.run.exact {
		return false
	}
	idx := q.kind.index(q.run.index)
	return idx == nil || idx.many
}

// source is the range that holds everything of the interval.
func (q *query) source(in interval) backend.Range {
	r := backend.Range{Kind: q.kind.Name, Namespace: q.namespace, Limit: 1}
	prefix := []byte(nil)
	if q.run != nil {
		r.Index, r.Start, r.End = q.run.index, q.run.start, q.run.end
		prefix = q.run.start
	}
	if !q.streams() {
		return r
	}
	// The order is that of the names, behind the one value of an exact run.
	if q.run != nil && q.namespace != "" {
		ns := backend.AppendString(append([]byte(nil), prefix...), q.namespace)
		r.Start, r.End = ns, backend.PrefixEnd(ns)
	}
	place := func(at []byte) []byte { return append(append([]byte(nil), prefix...), at...) }
	switch {
	case in.after != nil:
		r.Start = backend.Successor(place(in.after))
	case in.from != nil:
		r.Start = place(in.from)
	}
	if in.before != nil {
		r.End = place(in.before)
	}
	return r
}

const cursorFormat = 1

// appendCursor appends a place in the order: base64url of a format byte, the
// query's hash and the key. It is the same for a resource whatever the page.
func (q *query) appendCursor(dst, key []byte) []byte {
	var space [128]byte
	b := binary.BigEndian.AppendUint32(append(space[:0], cursorFormat), q.hash)
	return base64.RawURLEncoding.AppendEncode(dst, append(b, key...))
}

// maxCursor bounds what is read as a cursor: order values and a key.
const maxCursor = 16 << 10

// bound reads a cursor of this query; nil and "" mean none.
func (q *query) bound(argument string, cursor *string) ([]byte, error) {
	if cursor == nil || *cursor == "" {
		return nil, nil
	}
	bad := &Error{Code: CodeCursorInvalid, Path: argument, Kind: q.kind.Name, Message: argument + ": not a cursor of this connection; take it from pageInfo or an edge of the same field with the same arguments"}
	if len(*cursor) > maxCursor {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
	if err != nil || len(b) < 5 || b[0] != cursorFormat || binary.BigEndian.Uint32(b[1:]) != q.hash || !q.order.check(b[5:]) {
		return nil, bad
	}
	return b[5:], nil
}
