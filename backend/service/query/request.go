package query

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// ListRequest asks for a page of a connection by the Relay specification.
type ListRequest struct {
	Kind string
	// Namespace nil means all. What refers to a Parent that has a namespace is in that.
	Namespace     *string
	First, Last   *int
	After, Before *string
	// Filter is anything whose JSON is the filter in stored form: the members
	// and, or, not, name, namespace, labels, conditions, createdAt, updatedAt,
	// spec and status, the last two shaped like the kind. Nil keeps everything.
	Filter any
	// FieldNames are those by which the caller knows the fields: errors of the filter have them.
	FieldNames failure.FieldNames
	// OrderBy goes before the order of (namespace, name); at most [plan.MaxCriteria].
	OrderBy []Order
	// Parent leaves only what refers to a resource; the zero value leaves everything.
	Parent Parent
	// Names, if not nil, leaves only the resources of these names in Namespace, or
	// of a GLOBAL kind: at most [filter.MaxValues]. They are read by their keys.
	Names []string
	// ChangeCursor asks for [Page.ChangeCursor], taken before the first read.
	ChangeCursor bool
	// Ahead looks, while the page is read, whether there is more in its direction.
	// Without it [PageInfo.HasNextPage] and [PageInfo.HasPreviousPage] read for themselves.
	Ahead bool
	// Total counts the resources of the connection with the page, where it is read from the
	// store: else [Page.TotalCount] reads by itself, and may tell of a later state.
	Total bool
}

// namespace returns the namespace that is asked for, empty for all.
func (r *ListRequest) namespace() string {
	if r.Namespace != nil {
		return *r.Namespace
	}
	return r.Parent.Key.Namespace
}

// CheckOrder refuses an order of so many criteria, if it is more than one may have.
func CheckOrder(criteria int) error { return plan.CheckCriteria(criteria) }

// Order is one criterion of an order.
type Order = plan.Criterion

// Parent is the resource that the resources of an inverse connection refer to.
type Parent struct {
	// Reference is the path of the reference by which they do.
	Reference string
	Key       backend.Key
}

// connection is a query as it was asked for.
type connection struct {
	plan.Query
	// named says that the request has names, and narrowed that it names no namespace, and the
	// filter does.
	named, narrowed bool
}

// prepare checks a request of a kind.
func (c *connection) prepare(common *plan.Common, req *ListRequest) error {
	k := common.Kind
	*c = connection{Query: plan.Query{Common: common}, named: req.Names != nil}
	if req.Namespace != nil {
		c.Namespace = *req.Namespace
		if req.Parent.Key.Namespace == "" && req.Names == nil { // otherwise a resource has given it
			if k.Scope == descriptor.Global {
				return failure.BadInput("namespace", "kind %s is GLOBAL: its resources have no namespace", k.Name)
			}
			var v kind.Violations
			v.Namespace(failure.At("namespace"), c.Namespace)
			if err := v.Err(backend.Key{Kind: k.Name, Namespace: c.Namespace}); err != nil {
				return err
			}
		}
	}
	if err := c.Order.Check(k); err != nil {
		return err
	}
	if p := req.Parent; p != (Parent{}) {
		if k.Rows.Index(p.Reference) == nil {
			return failure.BadInput("parent", "kind %s has no reference %q", k.Name, failure.Shorten(p.Reference))
		}
		c.ParentNamespace, c.ParentName = p.Key.Namespace, p.Key.Name
		if p.Key.Namespace != "" {
			c.Namespace = p.Key.Namespace
		}
	}
	if c.named {
		if c.Namespace == "" && k.Scope != descriptor.Global {
			return failure.BadInput("namespace", "names need the namespace that they are in")
		}
		if len(req.Names) > filter.MaxValues {
			return failure.Limited("names", "more than %d names", filter.MaxValues)
		}
		c.Names = append([]string{}, req.Names...) // not nil: that is all
		slices.Sort(c.Names)
		c.Names = slices.Compact(c.Names)
	}
	asked := c.Namespace
	c.Narrow()
	c.narrowed = c.Namespace != asked
	return nil
}

// hash tells connections apart. How a connection is read has no part in it.
func (c *connection) hash() uint32 {
	text := c.Filter.Text()
	if c.Reference != "" {
		text += fmt.Sprintf(" parent %q %q", c.Reference, c.ParentName)
	}
	if c.named {
		names, _ := json.Marshal(c.Names)               // strings always marshal
		text += `{"name":{"in":` + string(names) + `}}` // as the filter that says the same
	}
	asked := c.Namespace
	if c.narrowed {
		asked = ""
	}
	h := fnv.New32a()
	for _, part := range []string{c.Kind.Name, asked, text, c.Order.String()} {
		_, _ = h.Write(backend.AppendString(nil, part))
	}
	return h.Sum32()
}

// cursors encodes and decodes the cursors of the connection.
func (c *connection) cursors() plan.Cursors {
	return plan.Cursors{Kind: c.Kind.Name, Hash: c.hash, IsKey: c.Order.IsKey}
}
