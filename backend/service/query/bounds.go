package query

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// bounds are a range of encoded values: start is inclusive and end exclusive, nil is open.
type bounds struct{ start, end []byte }

// bounds is the range that holds all values which a test can match, if there is one.
// exact says that it holds one value.
func (t test) bounds() (r bounds, exact, ok bool) {
	if len(t.values) == 0 {
		return bounds{}, false, false
	}
	v := t.values[0]
	switch {
	case t.op == "eq", (t.op == "in" || t.op == "hasAny") && len(t.values) == 1, t.op == "hasAll":
		return bounds{v, backend.PrefixEnd(v)}, true, true
	case t.op == "startsWith":
		return bounds{v, backend.StringPrefixEnd(v)}, false, true
	case t.op == "first":
		return bounds{v, backend.PrefixEnd(v)}, false, true
	case t.op == "lt":
		return bounds{nil, v}, false, true
	case t.op == "lte":
		return bounds{nil, backend.PrefixEnd(v)}, false, true
	case t.op == "gt":
		return bounds{backend.PrefixEnd(v), nil}, false, true
	case t.op == "gte":
		return bounds{v, nil}, false, true
	}
	return bounds{}, false, false
}

// and is what two ranges have in common.
func (r bounds) and(o bounds) bounds {
	if string(o.start) > string(r.start) {
		r.start = o.start
	}
	if r.end == nil || o.end != nil && string(o.end) < string(r.end) {
		r.end = o.end
	}
	return r
}

// behind is the range behind a prefix.
func (r bounds) behind(prefix []byte) bounds {
	out := bounds{append(slices.Clone(prefix), r.start...), backend.PrefixEnd(prefix)}
	if r.end != nil {
		out.end = append(slices.Clone(prefix), r.end...)
	}
	return out
}

// tests are those that must all hold.
func (e all) tests() (out []test) {
	for _, x := range e {
		switch x := x.(type) {
		case test:
			out = append(out, x)
		case all:
			out = append(out, x.tests()...)
		}
	}
	return out
}

// narrow takes what the filter says of namespace and name for bounds of what is read.
// The filter judges all the same.
func (q *query) narrow() {
	if q.reference != "" || q.names != nil {
		return
	}
	tests := q.filter.tests()
	namespaced := q.kind.Scope != descriptor.Global
	var namespaces bounds
	for _, t := range tests {
		if r, exact, ok := t.bounds(); ok && t.attribute == namespaceAttribute && namespaced && q.namespace == "" {
			namespaces = namespaces.and(r)
			if name, _, err := backend.TakeString(t.values[0]); exact && err == nil && name != "" {
				q.namespace = name
			}
		}
	}
	if namespaced && q.namespace == "" {
		q.within = namespaces
		return
	}
	var names bounds
	for _, t := range tests {
		if t.attribute != nameAttribute {
			continue
		}
		if t.op == "eq" || t.op == "in" {
			q.names, q.derived = namesOf(t), true
			return
		}
		if r, _, ok := t.bounds(); ok {
			names = names.and(r)
		}
	}
	if names.start != nil || names.end != nil {
		q.within = names.behind(backend.AppendString(nil, q.namespace))
	}
}

// namesOf are the names that a test accepts, as far as a resource can have them: in
// order and each once, and never nil.
func namesOf(t test) []string {
	out := make([]string, 0, len(t.values))
	for _, v := range t.values {
		if name, _, err := backend.TakeString(v); err == nil && name != "" && len(name) <= kind.MaxName {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
