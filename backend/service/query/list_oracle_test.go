package query_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query"
)

// listQuery is a connection, what it means in plain words, and a place in it.
type listQuery struct {
	// shelf is in the namespace, and library in none: then the namespace may be empty.
	namespace, shelf, library string
	filter                    map[string]any
	orders                    []query.Order
	keeps                     func(*volume) bool
	compares                  []func(a, b *volume) int

	size     int
	backward bool
	cursor   *string
	// behind is the book that the cursor leads behind, as it was then.
	behind *volume
}

// request asks for the connection, without a page of it.
func (q *listQuery) request() query.ListRequest {
	req := query.ListRequest{Kind: "Book", OrderBy: q.orders}
	if q.filter != nil {
		req.Filter = q.filter
	}
	if q.namespace != "" {
		req.Namespace = &q.namespace
	}
	if q.shelf != "" {
		req.Namespace = nil
		req.Parent = query.Parent{Reference: "spec.shelfRef", Key: backend.Key{Kind: "Shelf", Namespace: q.namespace, Name: q.shelf}}
	}
	if q.library != "" {
		req.Parent = query.Parent{Reference: "spec.libraryRef", Key: backend.Key{Kind: "Library", Name: q.library}}
	}
	return req
}

func (q *listQuery) text() string {
	filter, _ := json.Marshal(q.filter)
	cursor := ""
	if q.behind != nil {
		cursor = q.behind.key
	}
	return fmt.Sprintf("namespace %q shelf %q library %q filter %s order %v size %d backward %v behind %s", q.namespace, q.shelf, q.library, filter, q.orders, q.size, q.backward, cursor)
}

func (q *listQuery) matches(v *volume) bool {
	return (q.namespace == "" || v.ns == q.namespace) && (q.shelf == "" || v.shelf == q.shelf) && (q.library == "" || v.library == q.library) && q.keeps(v)
}

func (q *listQuery) compare(a, b *volume) int {
	for _, by := range q.compares {
		if r := by(a, b); r != 0 {
			return r
		}
	}
	return cmp.Or(strings.Compare(a.ns, b.ns), strings.Compare(a.name, b.name))
}

// isBehind reports whether a book lies behind the cursor in the direction of the pages.
func (q *listQuery) isBehind(v *volume) bool {
	if q.behind == nil {
		return true
	}
	return q.compare(v, q.behind) != 0 && (q.compare(v, q.behind) < 0) == q.backward
}

// randomQuery is a random connection.
func randomQuery(rnd *rand.Rand) listQuery {
	q := listQuery{keeps: func(*volume) bool { return true }}
	if rnd.IntN(2) == 0 {
		q.namespace = fmt.Sprint("ns", rnd.IntN(2))
		if rnd.IntN(2) == 0 {
			q.shelf = fmt.Sprint("s", rnd.IntN(3))
		}
	}
	if q.shelf == "" && rnd.IntN(3) == 0 {
		q.library = fmt.Sprint("l", rnd.IntN(2))
	}
	if rnd.IntN(4) > 0 {
		q.filter, q.keeps = randomFilter(rnd, 2)
	}
	for range rnd.IntN(3) {
		field, by := randomOrder(rnd)
		descending := rnd.IntN(2) == 0
		q.orders = append(q.orders, query.Order{Field: field, Descending: descending})
		if descending {
			up := by
			by = func(a, b *volume) int { return up(b, a) }
		}
		q.compares = append(q.compares, by)
		if field == "name" {
			break // in a namespace nothing else matters, but for one that has changed since it was shown
		}
	}
	return q
}

func randomOrder(rnd *rand.Rand) (field string, by func(a, b *volume) int) {
	weight := func(v *volume) int {
		if v.weight == nil {
			return -1
		}
		return *v.weight
	}
	switch rnd.IntN(7) {
	case 0:
		return "spec.title", func(a, b *volume) int { return strings.Compare(a.title, b.title) }
	case 1:
		return "spec.colour", func(a, b *volume) int { return cmp.Compare(a.colour, b.colour) }
	case 2:
		return "spec.weight", func(a, b *volume) int { return cmp.Compare(weight(a), weight(b)) }
	case 3:
		return "name", func(a, b *volume) int { return strings.Compare(a.name, b.name) }
	case 4:
		return "namespace", func(a, b *volume) int { return strings.Compare(a.ns, b.ns) }
	case 5:
		return "createdAt", func(a, b *volume) int { return cmp.Compare(a.created, b.created) }
	}
	return "updatedAt", func(a, b *volume) int { return cmp.Compare(a.updated, b.updated) }
}

// randomFilter is a filter and what it means.
func randomFilter(rnd *rand.Rand, depth int) (map[string]any, func(*volume) bool) {
	if depth > 0 && rnd.IntN(2) == 0 {
		a, holdsA := randomFilter(rnd, depth-1)
		b, holdsB := randomFilter(rnd, depth-1)
		switch rnd.IntN(3) {
		case 0:
			return map[string]any{"and": []any{a, b}}, func(v *volume) bool { return holdsA(v) && holdsB(v) }
		case 1:
			return map[string]any{"or": []any{a, b}}, func(v *volume) bool { return holdsA(v) || holdsB(v) }
		}
		return map[string]any{"not": a}, func(v *volume) bool { return !holdsA(v) }
	}
	spec := func(field, op string, value any) map[string]any {
		return map[string]any{"spec": map[string]any{field: map[string]any{op: value}}}
	}
	label := func(op string, value any) map[string]any {
		return map[string]any{"labels": []any{map[string]any{"key": "tier", op: value}}}
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rnd.IntN(20_000)) * time.Millisecond)
	stamp, title, w := at.Format(time.RFC3339Nano), string(rune('a'+rnd.IntN(4))), rnd.IntN(5)
	switch rnd.IntN(18) {
	case 0:
		return map[string]any{"createdAt": map[string]any{"lt": stamp}}, func(v *volume) bool { return v.created < at.UnixNano() }
	case 1:
		return map[string]any{"createdAt": map[string]any{"gte": stamp}}, func(v *volume) bool { return v.created >= at.UnixNano() }
	case 2:
		return map[string]any{"updatedAt": map[string]any{"gt": stamp}}, func(v *volume) bool { return v.updated > at.UnixNano() }
	case 3:
		return map[string]any{"updatedAt": map[string]any{"lte": stamp}}, func(v *volume) bool { return v.updated <= at.UnixNano() }
	case 4:
		return label("eq", "web"), func(v *volume) bool { return v.tier == "web" }
	case 5:
		return label("ne", "web"), func(v *volume) bool { return v.tier != "web" }
	case 6:
		return label("isNull", false), func(v *volume) bool { return v.tier != "" }
	case 7:
		return label("notIn", []any{"web", "x"}), func(v *volume) bool { return v.tier != "web" }
	case 8:
		return label("in", []any{"web", "db"}), func(v *volume) bool { return v.tier != "" }
	case 9:
		return spec("weight", "in", []any{0, w}), func(v *volume) bool { return v.weight != nil && (*v.weight == 0 || *v.weight == w) }
	case 10:
		return spec("weight", "isNull", true), func(v *volume) bool { return v.weight == nil }
	case 11:
		return map[string]any{"spec": map[string]any{"weight": map[string]any{"gte": 1, "lt": w}}}, func(v *volume) bool { return v.weight != nil && *v.weight >= 1 && *v.weight < w }
	case 12:
		return spec("colour", "eq", "blue"), func(v *volume) bool { return v.colour == 1 }
	case 13:
		return spec("tags", "hasAll", []any{"x", "y"}), func(v *volume) bool { return len(v.tags) == 2 }
	case 14:
		return spec("tags", "hasAny", []any{"x", "y"}), func(v *volume) bool { return len(v.tags) > 0 }
	case 15:
		return spec("tags", "hasNone", []any{"x"}), func(v *volume) bool { return !slices.Contains(v.tags, "x") }
	case 16:
		return map[string]any{"name": map[string]any{"startsWith": "n1"}}, func(v *volume) bool { return strings.HasPrefix(v.name, "n1") }
	}
	return spec("title", "gt", title), func(v *volume) bool { return v.title > title }
}
