package query

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/page"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// Namespace is a namespace that has resources.
type Namespace struct {
	Name string
	// Counts has the number of resources of each kind, in the order of the catalogue. It leaves out kinds without
	// resources in the namespace.
	Counts []KindCount
}

// KindCount is the number of resources of a kind.
type KindCount struct {
	Kind  string
	Count int
}

// NamespacePage is a page of the namespaces in which the caller may list resources, ordered by name.
type NamespacePage struct {
	Namespaces []Namespace
	// More reports whether namespaces follow the page. Before reports whether the request had a cursor.
	More, Before bool

	reader *Reader
}

// Cursor returns the cursor of the i-th namespace of the page.
func (p *NamespacePage) Cursor(i int) string {
	return string(plan.AppendCursor(nil, namespacesHash, []byte(p.Namespaces[i].Name)))
}

// namespacesHash identifies this connection in its cursors; see plan.Cursors.
const namespacesHash = 0x6e616d65

// TotalCount returns the number of all namespaces in which the caller may list resources.
func (p *NamespacePage) TotalCount(ctx context.Context) (n int, err error) {
	all, err := p.reader.occupied(ctx)
	if err != nil {
		return 0, err
	}
	for name := ""; ; n++ {
		ns, err := all.next(ctx, name)
		if err != nil || ns == nil {
			return n, err
		}
		name = ns.Name
	}
}

// Namespaces returns a page of the namespaces in which the caller may list resources. first has the same meaning as in
// [ListRequest].
func (r *Reader) Namespaces(ctx context.Context, first *int, after *string) (*NamespacePage, error) {
	size, err := (&Page{}).size(first, nil)
	if err != nil {
		return nil, err
	}
	cursors := plan.Cursors{
		Kind:  "Namespace",
		Hash:  func() uint32 { return namespacesHash },
		IsKey: func(key []byte) bool { return len(key) > 0 && len(key) <= kind.MaxNamespace },
	}
	from, err := cursors.Key("after", after)
	if err != nil {
		return nil, err
	}
	all, err := r.occupied(ctx)
	if err != nil {
		return nil, err
	}
	p := &NamespacePage{Before: from != nil, reader: r}
	for name := string(from); ; name = p.Namespaces[len(p.Namespaces)-1].Name {
		ns, err := all.next(ctx, name)
		if err != nil || ns == nil {
			return p, err
		}
		p.More = len(p.Namespaces) == size
		if p.More {
			return p, nil
		}
		if err := budget.From(ctx).Hold(ctx, namespaceBytes+len(ns.Counts)*kindCountBytes); err != nil {
			return nil, page.Failure(err, backend.Key{})
		}
		p.Namespaces = append(p.Namespaces, *ns)
	}
}

// The approximate memory, in bytes, of a namespace on a page and of one of its counts.
const (
	namespaceBytes = 128
	kindCountBytes = 24
)

// occupancy finds the namespaces in which a kind has resources.
type occupancy interface {
	// next returns the first namespace after the given one; "" if there is none.
	next(ctx context.Context, after string) (string, error)
	// count returns the number of resources in a namespace.
	count(ctx context.Context, namespace string) (int, error)
}

// occupied is the occupancy of all kinds that the caller may list.
type occupied []kindOccupancy

type kindOccupancy struct {
	kind *kind.Kind
	in   occupancy
	// ahead is the latest result of in.next. ended reports that this result was "".
	ahead string
	ended bool
}

// occupied returns the occupancy of all NAMESPACED kinds that the caller may list. It reads all kinds in memory from
// one state.
func (r *Reader) occupied(ctx context.Context) (out occupied, err error) {
	t := r.lister(ctx)
	var kinds []*kind.Kind
	for _, k := range r.kinds.All() {
		if err := t.loadRights(ctx); err != nil {
			return nil, err
		}
		if k.Scope == descriptor.Global || t.rights.Use(k.Kind, descriptor.VerbList) != nil {
			continue
		}
		if _, err := t.serve(ctx, k); err != nil { // may replace the view and the rights by later ones
			return nil, err
		}
		kinds = append(kinds, k)
	}
	if err := t.loadRights(ctx); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		one := kindOccupancy{kind: k, in: &storeOccupancy{reader: r, kind: k}}
		if served, ok := t.view.Kind(k.Name); ok {
			expired := map[string]int{}
			for e := range served.Expired(t.view.Now()) {
				expired[e.Resource.Namespace]++
			}
			one.in = &memoryOccupancy{kind: served, expired: expired}
		}
		if scope := t.scope(k); scope != nil {
			one.in = &scopedOccupancy{
				occupancy:  one.in,
				lister:     t,
				kind:       k,
				scope:      scope,
				namespaces: scope.Namespaces(),
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// next returns the first namespace with resources after the given one; nil if there is none. Each call must pass a
// later namespace than the call before.
func (all occupied) next(ctx context.Context, after string) (*Namespace, error) {
	for {
		var ns Namespace
		for i := range all {
			k := &all[i]
			if !k.ended && k.ahead <= after {
				name, err := k.in.next(ctx, after)
				if err != nil {
					return nil, err
				}
				k.ahead, k.ended = name, name == ""
			}
			if !k.ended && (ns.Name == "" || k.ahead < ns.Name) {
				ns.Name = k.ahead
			}
		}
		if ns.Name == "" {
			return nil, nil
		}
		for _, k := range all {
			if k.ended || k.ahead != ns.Name {
				continue
			}
			n, err := k.in.count(ctx, ns.Name)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				ns.Counts = append(ns.Counts, KindCount{k.kind.Name, n})
			}
		}
		if len(ns.Counts) > 0 {
			return &ns, nil
		}
		after = ns.Name // all its resources have expired or cannot be read
	}
}

// within returns the bounds of the encoded keys whose namespace is namespace.
func within(namespace string) (start, end []byte) {
	start = backend.AppendString(nil, namespace)
	return start, backend.PrefixEnd(start)
}

// memoryOccupancy is the occupancy of a kind in memory.
type memoryOccupancy struct {
	kind *index.Kind
	// expired maps a namespace to the number of its expired resources.
	expired map[string]int
}

func (o *memoryOccupancy) next(ctx context.Context, after string) (name string, err error) {
	var rest index.Run
	if after != "" {
		_, rest.Start = within(after)
	}
	o.kind.Scan(rest, false, func(_ string, e *index.Entry) bool {
		name = e.Resource.Namespace
		return false
	})
	return name, budget.From(ctx).Spend(budget.Steps, budget.Run)
}

func (o *memoryOccupancy) count(ctx context.Context, namespace string) (int, error) {
	start, end := within(namespace)
	run := index.Run{Start: start, End: end}
	return o.kind.Len(run) - o.kind.Unreadable(run) - o.expired[namespace],
		budget.From(ctx).Spend(budget.Steps, budget.Run)
}

// scopedOccupancy is the occupancy of a kind of which the caller may see only some resources.
type scopedOccupancy struct {
	occupancy
	lister     lister
	kind       *kind.Kind
	scope      *access.Scope
	namespaces []string
}

func (o *scopedOccupancy) next(ctx context.Context, after string) (string, error) {
	if len(o.scope.Everywhere()) > 0 { // there may be something in any namespace
		return o.occupancy.next(ctx, after)
	}
	at, known := slices.BinarySearch(o.namespaces, after)
	if known {
		at++
	}
	if at == len(o.namespaces) {
		return "", nil
	}
	return o.namespaces[at], nil
}

func (o *scopedOccupancy) count(ctx context.Context, namespace string) (int, error) {
	switch {
	case !o.scope.Touches(namespace):
		return 0, nil
	case o.scope.HasNamespace(namespace):
		return o.occupancy.count(ctx, namespace)
	}
	t := o.lister
	list := ListRequest{Kind: o.kind.Name, Namespace: &namespace, First: new(int)}
	var l listing
	if _, _, err := t.begin(ctx, &list, &l); err != nil {
		return 0, err
	}
	if _, ok := t.view.Kind(o.kind.Name); ok {
		l.page.view = t.view
	}
	// An explanation would name namespaces in which the caller sees nothing.
	return l.page.TotalCount(plan.WithoutExplanation(ctx))
}

// storeOccupancy is the occupancy of a kind that must be read from the store.
type storeOccupancy struct {
	reader *Reader
	kind   *kind.Kind
}

func (o *storeOccupancy) read(ctx context.Context, r backend.Range) (backend.Page, error) {
	if err := budget.From(ctx).Spend(budget.Steps, budget.Scan); err != nil {
		return backend.Page{}, err
	}
	r.Kind = o.kind.Name
	pages, err := o.reader.fetch.Ranges(ctx, page.RangeRequest{Range: r, Kind: o.kind})
	if err != nil {
		return backend.Page{}, err
	}
	return pages[0], nil
}

func (o *storeOccupancy) next(ctx context.Context, after string) (string, error) {
	r := backend.Range{Limit: 1, Bare: true}
	if after != "" {
		_, r.Start = within(after)
	}
	p, err := o.read(ctx, r)
	if err != nil || len(p.Resources) == 0 {
		return "", err
	}
	return p.Resources[0].Namespace, nil
}

func (o *storeOccupancy) count(ctx context.Context, namespace string) (int, error) {
	p, err := o.read(ctx, backend.Range{Namespace: namespace, Count: true})
	if err != nil {
		return 0, err
	}
	unreadable, err := o.reader.unreadable.Count(ctx, o.kind, namespace)
	return max(p.Count-unreadable, 0), err
}
