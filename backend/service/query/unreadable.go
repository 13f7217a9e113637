package query

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/index"
)

// MaxUnreadables is the maximum number of resources that [Reader.Unreadables] returns.
const MaxUnreadables = 1000

// UnreadableResource is a resource that this gateway cannot read. If it is stored, lists leave it out. If a service has
// it and it cannot be mirrored, lists show the state that was mirrored last, or leave it out if there is none.
type UnreadableResource struct {
	Key backend.Key
	// Reason describes the problem. For a stored resource it may name fields, but has no values of the resource. For a
	// resource of a service it may have the service's message and the value that cannot be mirrored.
	Reason string
}

// Unreadables returns the resources of a kind that cannot be read or mirrored, and that the caller may list and see,
// sorted by key. It returns at most [MaxUnreadables]. A nil namespace means all namespaces. If the kind is not in
// memory, all its resources are read, within the limits of the caller.
func (r *Reader) Unreadables(ctx context.Context, kindName string, namespace *string) ([]UnreadableResource, error) {
	t := r.lister(ctx)
	var q connection
	served, err := t.prepare(ctx, &ListRequest{Kind: kindName, Namespace: namespace}, &q)
	if err != nil {
		return nil, err
	}
	p := &Page{reader: r, query: &q}
	if served != nil {
		p.view = t.view
	} else if err := r.readAll(ctx, ListRequest{Kind: kindName, Namespace: namespace}); err != nil {
		return nil, err
	}
	var out []UnreadableResource
	err = p.eachUnreadable(ctx, func(key backend.Key, err error) bool {
		out = append(out, UnreadableResource{Key: key, Reason: reasonOf(err)})
		return len(out) < MaxUnreadables
	})
	if err != nil {
		return nil, err
	}
	return p.withUnmirrored(ctx, out)
}

// withUnmirrored adds the resources that cannot be mirrored to those that cannot be read. A resource that is both keeps
// the reason why it cannot be read.
func (p *Page) withUnmirrored(ctx context.Context, out []UnreadableResource) ([]UnreadableResource, error) {
	unmirrored := p.reader.unmirrored(p.query.Kind.Whole())
	if len(unmirrored) == 0 {
		return out, nil
	}
	if err := budget.From(ctx).Spend(budget.Steps, len(unmirrored)*budget.Run); err != nil {
		return nil, err
	}
	for _, u := range out {
		delete(unmirrored, u.Key)
	}
	namespace := p.query.requestedNamespace()
	for key, reason := range unmirrored {
		if (namespace == "" || key.Namespace == namespace) && p.query.sees(key) {
			out = append(out, UnreadableResource{Key: key, Reason: reason})
		}
	}
	slices.SortFunc(out, func(a, b UnreadableResource) int {
		return cmp.Or(strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	return out[:min(len(out), MaxUnreadables)], nil
}

// sees reports whether the caller may see a resource of the connection's kind.
func (c *connection) sees(key backend.Key) bool {
	return c.Scope == nil || c.Scope.Has(key.Namespace, key.Name)
}

// readAll reads all resources of a request, so that those which cannot be read are remembered.
func (r *Reader) readAll(ctx context.Context, req ListRequest) error {
	first := MaxPage
	req.First = &first
	for {
		p, err := r.List(ctx, req)
		if err != nil {
			return err
		}
		info := p.PageInfo()
		if more, err := info.HasNextPage(ctx); err != nil || !more {
			return err
		}
		req.After = info.EndCursor()
	}
}

// reasonOf returns the reason why a resource cannot be read, in a form that may be shown to callers.
func reasonOf(err error) string {
	reason := strings.TrimSuffix(err.Error(), ": "+backend.ErrUnreadable.Error())
	if errors.Is(err, backend.ErrUnreadable) && reason == backend.ErrUnreadable.Error() {
		return "the record does not decode"
	}
	return reason
}

// Unreadable returns how many resources in the kind and namespace of the connection cannot be read. It ignores the
// filter, and counts only resources that the caller may see. If the kind is not in memory, it counts only resources
// that this gateway has tried to read.
func (p *Page) Unreadable(ctx context.Context) (n int, err error) {
	if p.relation != nil { // a page of dependencies shows them
		return 0, nil
	}
	err = p.eachUnreadable(ctx, func(backend.Key, error) bool {
		n++
		return true
	})
	return n, err
}

// eachUnreadable calls yield for each resource that Unreadable counts, sorted by key, until yield returns false. If
// there are none, it charges nothing.
func (p *Page) eachUnreadable(ctx context.Context, yield func(key backend.Key, err error) bool) error {
	k := p.query.Kind
	namespace := p.query.requestedNamespace()
	if p.view == nil {
		found, err := p.reader.unreadable.Find(ctx, k, namespace)
		if err != nil {
			return err
		}
		for _, damaged := range found {
			if p.query.sees(damaged.Key) && !yield(damaged.Key, damaged.Err) {
				break
			}
		}
		return nil
	}
	served, ok := p.view.Kind(k.Name)
	if !ok {
		return nil
	}
	var run index.Run
	if namespace != "" {
		run.Start, run.End = within(namespace)
	}
	spent := budget.From(ctx)
	for e := range served.EachUnreadable(run) {
		if err := spent.Spend(budget.Steps, budget.Run); err != nil {
			return err
		}
		if !e.ExpiredAt(p.view.Now()) && p.query.sees(e.Resource.Key) && !yield(e.Resource.Key, e.Err) {
			break
		}
	}
	return nil
}

// requestedNamespace returns the namespace of the request or of its parent; "" for all namespaces.
func (c *connection) requestedNamespace() string {
	switch {
	case c.Reference != "":
		return c.ParentNamespace
	case c.narrowed: // by the filter
		return ""
	}
	return c.Namespace
}
