package engine

import (
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service"
)

// want is a link that is to be read.
type want struct {
	item *item
	// link is its number among those of the item.
	link  int
	field *field
	// key of a resource; zero for a page.
	key backend.Key
	// request of a page, and what it is the same request by; "" for none.
	request service.ListRequest
	same    string
}

// resolve reads all links, level by level: what one level leads to is read by
// one call for the resources and one for the pages, both at once.
func (r *run) resolve() {
	for len(r.next) > 0 {
		r.level, r.next = r.next, r.level[:0]
		r.wanted = r.wanted[:0]
		for _, v := range r.level {
			r.want(v.item, v.on, body.Root)
		}
		keys, requests := r.unread(), r.requests()
		var resources []*service.Resource
		var pages []*service.Page
		var failed error
		var errs []error
		lookup := func() error {
			resources, failed = r.engine.svc.Lookup(r.ctx, r.caller, keys)
			return nil
		}
		list := func() error {
			pages, errs = r.engine.svc.ListMany(r.ctx, r.caller, requests.list)
			return nil
		}
		switch {
		case len(keys) > 0 && len(requests.list) > 0:
			var both errgroup.Group
			both.Go(lookup)
			both.Go(list)
			_ = both.Wait() // their errors are told field by field
		case len(keys) > 0:
			_ = lookup()
		case len(requests.list) > 0:
			_ = list()
		}
		for i, res := range resources {
			r.found[keys[i]] = bodyOf(res)
		}
		r.linkResources(failed)
		r.linkPages(&requests, pages, errs)
	}
}

// want collects the links of a selection on an object of an item's body, in the
// order in which they will be written.
func (r *run) want(it *item, on *object, t body.Table) {
	b := it.body
	for _, f := range on.links {
		switch f.op {
		case opRef, opRefs, opInverse:
			n := len(it.links)
			it.links = append(it.links, link{})
			w := want{item: it, link: n, field: f}
			if f.op == opRef {
				w.key = backend.Key{Kind: f.kind.Name, Namespace: b.Stored.Namespace, Name: b.Text(refSpan(b, f.ref, t))}
				if w.key.Name != "" {
					r.wanted = append(r.wanted, w)
				}
				continue
			}
			args, err := r.arguments(f)
			if err != nil {
				it.links[n].err = err
				continue
			}
			w.request = listRequest(f, args)
			if ns := b.Stored.Namespace; ns != "" {
				w.request.Namespace = &b.Stored.Namespace
			}
			if f.op == opInverse {
				w.request.Parent = &service.Parent{Reference: f.inverse.path, Key: b.Stored.Key}
			} else {
				w.request.Names = refNames(b, f.ref, t)
				w.same = sameNames(b.Stored.Namespace, w.request.Names)
			}
			r.wanted = append(r.wanted, w)
		case opObject:
			if s := b.At(t, f.slot); !s.IsZero() {
				r.want(it, f.sub, b.Object(s))
			}
		case opObjects:
			if s := b.At(t, f.slot); !s.IsZero() {
				for _, e := range b.Objects(s) {
					r.want(it, f.sub, e)
				}
			}
		}
	}
}

// refSpan is the value of a reference.
func refSpan(b *body.Body, ref *reference, t body.Table) body.Span {
	if ref.fromRoot {
		t = body.Root
	}
	last := len(ref.slots) - 1
	for _, slot := range ref.slots[:last] {
		s := b.At(t, slot)
		if s.IsZero() {
			return s
		}
		t = b.Object(s)
	}
	return b.At(t, ref.slots[last])
}

// refNames are the names in a list of references, each once, in order.
func refNames(b *body.Body, ref *reference, t body.Table) []string {
	names := []string{}
	for raw := range b.Scalars(refSpan(b, ref, t)) {
		names = append(names, string(body.Unquote(nil, raw)))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sameNames tells requests of lists of references apart.
func sameNames(namespace string, names []string) string {
	var b strings.Builder
	b.WriteString(namespace)
	for _, n := range names {
		b.WriteByte(0)
		b.WriteString(n)
	}
	return b.String()
}

// unread are the keys that are wanted and were not read before in this run.
func (r *run) unread() (keys []backend.Key) {
	for i := range r.wanted {
		w := &r.wanted[i]
		if w.field.op != opRef {
			continue
		}
		if r.found == nil {
			r.found = map[backend.Key]*body.Body{}
		}
		if _, ok := r.found[w.key]; !ok {
			r.found[w.key] = nil
			keys = append(keys, w.key)
		}
	}
	return keys
}

// pageRequests are the distinct requests of a level.
type pageRequests struct {
	list []service.ListRequest
	// of is the request of each want, -1 for a resource.
	of []int
}

func (r *run) requests() (out pageRequests) {
	type sameRequest struct {
		field *field
		names string
	}
	var known map[sameRequest]int
	for i := range r.wanted {
		w := &r.wanted[i]
		if w.field.op == opRef {
			out.of = append(out.of, -1)
			continue
		}
		if w.field.op == opRefs {
			key := sameRequest{w.field, w.same}
			if n, ok := known[key]; ok {
				out.of = append(out.of, n)
				continue
			}
			if known == nil {
				known = map[sameRequest]int{}
			}
			known[key] = len(out.list)
		}
		out.of = append(out.of, len(out.list))
		out.list = append(out.list, w.request)
	}
	return out
}

// linkResources gives the links of references what was found.
func (r *run) linkResources(failed error) {
	for i := range r.wanted {
		w := &r.wanted[i]
		if w.field.op != opRef {
			continue
		}
		l, b := &w.item.links[w.link], r.found[w.key]
		switch {
		case b != nil:
			l.item = r.shared(w.field, b)
		case failed != nil:
			l.err = failed
		}
	}
	if failed != nil { // what could not be read is not known to be absent
		for key, b := range r.found {
			if b == nil {
				delete(r.found, key)
			}
		}
	}
}

// shared is one item for all places where a selection shows a resource.
func (r *run) shared(f *field, b *body.Body) *item {
	key := itemKey{f.on(f.kind), b}
	it := r.items[key]
	if it == nil {
		if r.items == nil {
			r.items = map[itemKey]*item{}
		}
		it = r.newItem(b, f)
		r.items[key] = it
	}
	return it
}

// linkPages gives the links of connections their pages.
func (r *run) linkPages(requests *pageRequests, pages []*service.Page, errs []error) {
	made := make([]*page, len(pages))
	for i, n := range requests.of {
		if n < 0 {
			continue
		}
		w := &r.wanted[i]
		l := &w.item.links[w.link]
		if l.err = errs[n]; l.err != nil {
			continue
		}
		if made[n] == nil {
			made[n] = r.newPage(pages[n], w.field)
		}
		l.page = made[n]
	}
}
