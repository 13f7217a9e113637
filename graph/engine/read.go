package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/internal/slab"
)

// want is a link that must be read.
type want struct {
	item *item
	// link is the index of the link in item.links.
	link  int
	field *field
	// key is the key of a referenced resource; zero if the link is a page.
	key backend.Key
	// args are the arguments of a page, and names the names in a list of references.
	args  *arguments
	names []string
}

// resolve reads all links of the answer, level by level.
func (r *run) resolve(ctx context.Context) {
	for len(r.next) > 0 {
		r.checkContext(ctx, nil)
		r.hold(ctx, nil, r.spent.budget.Hold(ctx, len(r.next)*linkBytes))
		r.collectLevel(ctx)
		r.readLevel(ctx)
	}
}

// collectLevel makes the next level the current one, and collects the links in it that must be read.
func (r *run) collectLevel(ctx context.Context) {
	clear(r.level)
	clear(r.wanted)
	r.level, r.next = r.next, r.level[:0]
	r.wanted = r.wanted[:0]
	for _, v := range r.level {
		r.collectLinks(ctx, v.item, v.on, body.Root)
	}
}

// readLevel reads the links of the current level and adds the resources that it finds to the next level. It makes up to
// three calls at once: for resources, for pages, and for pages of dependencies.
func (r *run) readLevel(ctx context.Context) {
	keys, requests := r.unread(), r.requests()
	var resources []*query.Resource
	var failed error
	var pages, related answeredPages
	within, traced := r.traceLevel(ctx, len(keys), len(requests.list)+len(requests.related))
	calls := make([]func(), 0, 3)
	if len(keys) > 0 {
		calls = append(calls, func() { resources, failed = r.engine.svc.Reader.Lookup(within, keys) })
	}
	if len(requests.list) > 0 {
		calls = append(calls, func() { pages.pages, pages.errs = r.engine.svc.Reader.ListMany(within, requests.list) })
	}
	if len(requests.related) > 0 {
		calls = append(calls, func() {
			related.pages, related.errs = r.engine.svc.Reader.Dependencies(within, requests.related)
		})
	}
	together(calls)
	traced.End()
	for i, res := range resources {
		r.found[keys[i]] = bodyOf(res)
	}
	r.linkResources(ctx, failed)
	r.linkPages(ctx, &requests, pages, related)
	r.spareRequests = requests.emptied()
}

// linkBytes is how many bytes of memory are claimed for reading the links of an item. An item with several selections
// counts once for each.
const linkBytes = 256

// together runs functions concurrently and waits for all of them. If one panics, together panics in the goroutine of
// its caller, who can recover it.
func together(calls []func()) {
	if len(calls) < 2 {
		for _, call := range calls {
			call()
		}
		return
	}
	var all sync.WaitGroup
	panicked := make([]any, len(calls)-1)
	for i, call := range calls[1:] {
		all.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panicked[i] = fmt.Sprintf("%v, at\n%s", v, debug.Stack())
				}
			}()
			call()
		})
	}
	func() {
		defer all.Wait()
		calls[0]()
	}()
	for _, v := range panicked {
		if v != nil {
			panic(v)
		}
	}
}

// collectLinks adds the links that a selection on an object of an item's body needs, in the order in which they will be
// written.
func (r *run) collectLinks(ctx context.Context, it *item, on *object, t body.Table) {
	b := it.body
	for _, f := range on.links {
		switch {
		case f.link != linkNone:
			if it.links == nil {
				it.links = r.linkSlab.Take(len(on.links))[:0]
			}
			r.countLink(f)
			n := len(it.links)
			it.links = append(it.links, link{})
			w := want{item: it, link: n, field: f}
			if f.link == linkRef {
				w.key = backend.Key{
					Kind:      f.kind.Name,
					Namespace: f.kind.NamespaceFrom(b.Stored.Namespace),
					Name:      refName(b, f.ref, t),
				}
				if w.key.Name != "" {
					r.wanted = append(r.wanted, w)
				}
				continue
			}
			w.args = r.evaluated(ctx, f)
			if w.args.err != nil {
				it.links[n].err = w.args.err
				continue
			}
			if f.link == linkRefs {
				w.names = refNames(b, f.ref, t, &r.nameSlab)
			}
			r.wanted = append(r.wanted, w)
		case f.list:
			if s := b.At(t, f.slot); !s.IsZero() {
				for _, e := range b.Objects(s) {
					r.collectLinks(ctx, it, f.sub, e)
				}
			}
		default:
			if s := b.At(t, f.slot); !s.IsZero() {
				r.collectLinks(ctx, it, f.sub, b.Object(s))
			}
		}
	}
}

// refSpan returns the position of a reference in a body. found is false if the object with the reference is absent.
func refSpan(b *body.Body, ref *reference, t body.Table) (s body.Span, found bool) {
	if ref.fromRoot {
		t = body.Root
	}
	last := len(ref.slots) - 1
	for _, slot := range ref.slots[:last] {
		s := b.At(t, slot)
		if s.IsZero() {
			return s, false
		}
		t = b.Object(s)
	}
	return b.At(t, ref.slots[last]), true
}

// refName returns the name in a reference; "" if there is none.
func refName(b *body.Body, ref *reference, t body.Table) string {
	s, found := refSpan(b, ref, t)
	if found && s.IsZero() {
		return ref.otherwise
	}
	return b.Text(s)
}

// refNames returns the names in a list of references, sorted and without duplicates.
func refNames(b *body.Body, ref *reference, t body.Table, room *slab.Slab[string]) []string {
	names := room.Take(fewNames)[:0]
	span, _ := refSpan(b, ref, t)
	for raw := range b.Scalars(span) {
		names = append(names, body.Text(raw))
	}
	if len(names) > 1 {
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return names
}

// fewNames is the initial capacity for the names in a list of references.
const fewNames = 4

// unread returns the wanted keys that this run has not read yet.
func (r *run) unread() (keys []backend.Key) {
	for i := range r.wanted {
		w := &r.wanted[i]
		if w.field.link != linkRef {
			continue
		}
		if r.claim(w.key) {
			keys = append(keys, w.key)
		}
	}
	return keys
}

// claim reports whether the caller must read a resource. It returns true only once for each key.
func (r *run) claim(key backend.Key) bool {
	if _, ok := r.found[key]; ok {
		return false
	}
	if r.found == nil {
		r.found = map[backend.Key]*body.Body{}
	}
	r.found[key] = nil
	return true
}

// pageRequests are the requests of a level, without duplicates.
type pageRequests struct {
	list []query.ListRequest
	// related are the requests for dependencies.
	related []query.DependencyRequest
	// of maps each wanted link to the index of its request in list or related; -1 if it is a resource.
	of []int
	// same maps a list of references to the index of its request, so that equal lists are read only once.
	same map[sameRequest]int
}

// sameRequest identifies a list of references.
type sameRequest struct {
	field     *field
	namespace string
	// names is the only name, or an encoding of n names.
	names string
	n     int
}

// requests returns the requests for the wanted pages.
func (r *run) requests() (out pageRequests) {
	out, r.spareRequests = r.spareRequests, pageRequests{}
	for i := range r.wanted {
		w := &r.wanted[i]
		switch w.field.link {
		case linkRef:
			out.of = append(out.of, -1)
			continue
		case linkDependencies:
			out.of = append(out.of, len(out.related))
			out.related = append(out.related, r.dependencies(w))
			continue
		}
		stored := w.item.body.Stored
		req := w.args.request
		namespace := w.field.kind.NamespaceFrom(stored.Namespace)
		if namespace != "" { // else an inverse has the namespace of its arguments
			req.Namespace = &stored.Namespace
		}
		if w.field.link == linkInverse {
			req.Parent = query.Parent{Reference: w.field.inverse.path, Key: stored.Key}
		} else {
			key := sameRequest{w.field, namespace, r.joined(w.names), len(w.names)}
			if n, ok := out.same[key]; ok {
				out.of = append(out.of, n)
				continue
			}
			if out.same == nil {
				out.same = map[sameRequest]int{}
			}
			out.same[key] = len(out.list)
			req.Names = w.names
		}
		out.of = append(out.of, len(out.list))
		out.list = append(out.list, req)
	}
	return out
}

// joined returns a text that differs for different lists of names of the same length.
func (r *run) joined(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	r.scratch = r.scratch[:0]
	for _, name := range names {
		r.scratch = backend.AppendString(r.scratch, name)
	}
	return string(r.scratch)
}

// linkResources stores the resources that were read in the links that refer to them. failed is the error of the read;
// nil if it succeeded.
func (r *run) linkResources(ctx context.Context, failed error) {
	for i := range r.wanted {
		w := &r.wanted[i]
		if w.field.link != linkRef {
			continue
		}
		l, b := &w.item.links[w.link], r.found[w.key]
		switch {
		case b != nil:
			l.item = r.shared(w.field, w.field.kind, b)
		case failed != nil:
			r.haltOn(ctx, failed, w.field)
			l.err = failed
		}
	}
	if failed != nil {
		r.forgetAbsent()
	}
}

// forgetAbsent forgets the resources that were not found. After a failed read they may still exist.
func (r *run) forgetAbsent() {
	for key, b := range r.found {
		if b == nil {
			delete(r.found, key)
		}
	}
}

// shared returns the item of a referenced resource for a selection. All places that show the resource with this
// selection share it.
func (r *run) shared(f *field, k *kindInfo, b *body.Body) *item {
	key := itemKey{f.on(k), b}
	it := r.sharedItems[key]
	if it == nil {
		if r.sharedItems == nil {
			r.sharedItems = map[itemKey]*item{}
		}
		it = r.newItem(b, f)
		r.sharedItems[key] = it
	}
	return it
}

// answeredPages has a page or an error for each request.
type answeredPages struct {
	pages []*query.Page
	errs  []error
}

// linkPages stores the pages that were read in the links that are connections.
func (r *run) linkPages(ctx context.Context, requests *pageRequests, pages, related answeredPages) {
	made := make([]*connectionPage, len(pages.pages))
	for i, n := range requests.of {
		if n < 0 {
			continue
		}
		w := &r.wanted[i]
		l := &w.item.links[w.link]
		from := pages
		if w.field.link == linkDependencies {
			from = related
		}
		l.err = from.errs[n]
		if l.err != nil {
			r.haltOn(ctx, l.err, w.field)
			continue
		}
		switch {
		case from.pages[n].Dependencies != nil: // no other link has this request
			l.page = r.newPage(from.pages[n], w.field)
			continue
		case made[n] == nil:
			made[n] = r.newPage(pages.pages[n], w.field)
		}
		l.page = made[n]
	}
}
