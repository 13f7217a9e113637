package query

import (
	"context"
	"reflect"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/query/page"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// List returns a page, by the algorithm of the Relay cursor specification. Resources may be written while a client
// reads page after page. Each resource that keeps its position in the order is still on exactly one page. An exception
// are very long pages that are read from the store: see docs/decisions.md, "Reads from memory". Resources that cannot
// be read are left out, counted and logged.
func (r *Reader) List(ctx context.Context, req ListRequest) (*Page, error) {
	pages, errs := r.ListMany(ctx, []ListRequest{req})
	return pages[0], errs[0]
}

// ListMany returns a page or an error for each request. The pages are read together: one call of the store makes the
// next step of all of them.
func (r *Reader) ListMany(ctx context.Context, reqs []ListRequest) (pages []*Page, errs []error) {
	pages, errs = make([]*Page, len(reqs)), make([]error, len(reqs))
	t, spent := r.lister(ctx), budget.From(ctx)
	t.settle(ctx, reqs)
	var memory *page.Memory
	var memoryView *index.View
	var inMemory page.Read
	var reads []*page.Read
	var of []int
	var lists []*listing
	for i := range reqs {
		errs[i] = spent.Over()
		if errs[i] != nil {
			continue
		}
		l := &listing{}
		served, want, err := t.begin(ctx, &reqs[i], l)
		switch {
		case err != nil:
		case served == nil:
			reads, of = append(reads, &page.Read{Query: &l.query.Query, Want: want}), append(of, i)
			lists = append(lists, l)
			continue
		default:
			if memoryView != t.view {
				memory, memoryView = page.NewMemory(ctx, r.unreadable, t.view.Now(), 1), t.view
			}
			l.page.view = t.view
			inMemory = page.Read{Query: &l.query.Query, Want: want}
			err = memory.Do(ctx, &inMemory, served)
		}
		pages[i], errs[i] = l.result(&inMemory, err)
	}
	if len(reads) > 0 {
		for i, err := range r.pages.Do(ctx, reads) {
			pages[of[i]], errs[of[i]] = lists[i].result(reads[i], err)
		}
	}
	return pages, errs
}

// listing is a page that is being read, and its query.
type listing struct {
	page  Page
	query connection
}

// result completes the page from its read, or returns the error of the read.
func (l *listing) result(read *page.Read, err error) (*Page, error) {
	if err != nil {
		return nil, err
	}
	p := &l.page
	p.Edges = read.Edges
	p.cut = read.More
	p.ahead = read.Ahead || len(read.Edges) < read.Size
	if read.Total {
		p.total = &read.Matches
	}
	return p, nil
}

// lister prepares the pages that are read together.
type lister struct {
	reader *Reader
	view   *index.View
	// known has the parts of queries that several requests share. last is the part for the previous request, and
	// lastKey is its key. The next request usually has the same key.
	known   map[commonKey]*plan.Common
	last    *plan.Common
	lastKey commonKey
	// refused has the errors of invalid filters.
	refused map[commonKey]error
	// rights are the rights of the caller; nil until loadRights was called.
	rights *access.Rights
	// listable is the last kind for which the caller was found to have LIST.
	listable *kind.Kind
	// awaited is a kind that could not be loaded into memory, and lost is the error. The lister does not wait for this
	// kind again.
	awaited *kind.Kind
	lost    error
}

// lister returns an empty lister.
func (r *Reader) lister(ctx context.Context) lister {
	return lister{reader: r, view: new(r.view(ctx))}
}

// loadRights loads the caller's rights from a policy that is not older than the view.
func (t *lister) loadRights(ctx context.Context) (err error) {
	if t.rights == nil {
		t.rights, err = t.reader.Rights(ctx)
	}
	return err
}

// use returns an error if the caller may not list any resource of a kind.
func (t *lister) use(ctx context.Context, k *kind.Kind) error {
	if t.rights != nil && t.listable == k {
		return nil
	}
	if err := t.loadRights(ctx); err != nil {
		return err
	}
	if err := t.rights.Use(k.Kind, descriptor.VerbList); err != nil {
		return err
	}
	t.listable = k
	return nil
}

// scope returns the resources of a kind that the caller may list and see; nil if the caller may list and see all.
func (t *lister) scope(k *kind.Kind) *access.Scope {
	if t.rights.All() {
		return nil
	}
	if s := t.rights.Scope(k.Kind, descriptor.VerbList, descriptor.VerbGet); !s.All() {
		return s
	}
	return nil
}

// commonKey identifies what several requests share. filter is the address of the map with the filter; 0 if there is no
// filter.
type commonKey struct {
	kind                  *kind.Kind
	reference, parentKind string
	filter                uintptr
}

// common returns the part of the query that a request shares with other requests for the same field. A shared filter is
// parsed only once, even if it is invalid. There may be thousands of requests, and parsing is not charged to the
// budget.
func (t *lister) common(k *kind.Kind, req *ListRequest) (*plan.Common, error) {
	key := commonKey{kind: k, reference: req.Parent.Reference, parentKind: req.Parent.Key.Kind}
	if m, ok := req.Filter.(map[string]any); ok {
		key.filter = reflect.ValueOf(m).Pointer()
	} else if req.Filter != nil { // not shared with other requests
		f, err := filter.Parse(k, req.Filter, req.FieldNames)
		return t.newCommon(key, f, req.OrderBy), err
	}
	if err := t.refused[key]; err != nil {
		return nil, err
	}
	c := t.last
	if c == nil || key != t.lastKey {
		c = t.known[key]
	}
	switch {
	case c == nil:
		f, err := filter.Parse(k, req.Filter, req.FieldNames)
		if err != nil {
			if t.refused == nil {
				t.refused = map[commonKey]error{}
			}
			t.refused[key] = err
			return nil, err
		}
		c = t.newCommon(key, f, req.OrderBy)
	case slices.Equal(c.Order, req.OrderBy):
		t.last, t.lastKey = c, key
		return c, nil
	default:
		c = t.newCommon(key, c.Filter, req.OrderBy)
	}
	if t.known == nil {
		t.known = map[commonKey]*plan.Common{}
	}
	t.known[key] = c
	t.last = c
	t.lastKey = key
	return c, nil
}

func (t *lister) newCommon(key commonKey, f filter.Filter, order []Order) *plan.Common {
	return &plan.Common{
		Kind:       key.kind,
		Reference:  key.reference,
		ParentKind: key.parentKind,
		Filter:     f,
		Order:      order,
		Scope:      t.scope(key.kind),
	}
}

// serve returns a kind from the view; nil if the kind must be read from the store. If the kind is still being loaded,
// serve waits for it and replaces the view and the rights by later ones.
func (t *lister) serve(ctx context.Context, k *kind.Kind) (*index.Kind, error) {
	served, ok := t.view.Kind(k.Name)
	if ok {
		return served, nil
	}
	if t.awaited == k {
		return nil, t.lost
	}
	later, ok, err := t.reader.await(ctx, *t.view, k)
	if err != nil {
		t.awaited, t.lost = k, err
	}
	if ok {
		t.view = &later
		t.last = nil
		t.known = nil
		t.rights, t.listable = nil, nil
		served, _ = t.view.Kind(k.Name)
	}
	return served, err
}

// settle waits until the kinds of all requests are loaded, before the first page is read. So all pages are read from
// one state and with one time for expiry. settle ignores errors, which prepare returns later for the requests that they
// concern.
func (t *lister) settle(ctx context.Context, reqs []ListRequest) {
	for range maxSettled {
		before := t.view
		for i := range reqs {
			k, err := t.reader.kinds.Find(reqs[i].Kind)
			if err != nil || t.use(ctx, k) != nil {
				continue
			}
			if _, err := t.serve(ctx, k); err != nil {
				return
			}
		}
		if t.view == before {
			return
		}
	}
}

// maxSettled is how often settle checks all kinds. While it waits for one kind, another kind may have to leave memory.
const maxSettled = 3

// prepare checks a request and sets its query. served is the kind in memory; nil if the kind must be read from the
// store.
func (t *lister) prepare(ctx context.Context, req *ListRequest, q *connection) (served *index.Kind, err error) {
	k, err := t.reader.kinds.Find(req.Kind)
	if err != nil {
		return nil, err
	}
	err = t.use(ctx, k)
	if err == nil {
		served, err = t.serve(ctx, k)
	}
	if err == nil {
		err = t.use(ctx, k) // again: serve may have taken a later view, with other rights
	}
	if err != nil {
		return nil, access.About(err, backend.Key{Kind: k.Name, Namespace: req.namespace()})
	}
	common, err := t.common(k, req)
	if err != nil {
		return nil, err
	}
	return served, q.prepare(common, req)
}

// begin checks a request and prepares its page. served is as in prepare.
func (t *lister) begin(
	ctx context.Context, req *ListRequest, l *listing,
) (served *index.Kind, want plan.Want, err error) {
	if served, err = t.prepare(ctx, req, &l.query); err != nil {
		return nil, want, err
	}
	p := &l.page
	p.reader, p.query = t.reader, &l.query
	if want, err = p.begin(req.First, req.Last, req.After, req.Before, req.Ahead); err != nil {
		return nil, want, err
	}
	want.Total = req.Total && served == nil
	if !req.ChangeCursor {
		return served, want, nil
	}
	at := t.view.Position()
	if served == nil {
		if at, err = t.reader.fetch.Store.Position(ctx); err != nil {
			return nil, want, failure.Of(err, backend.Key{Kind: l.query.Kind.Name})
		}
	}
	p.changeCursor = new(ChangeCursor(at, t.rights.Stamp()))
	return served, want, nil
}
