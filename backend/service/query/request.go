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

// ListRequest requests a page of a connection by the Relay specification.
type ListRequest struct {
	Kind string
	// Namespace nil means all. With a Parent that has a namespace, the parent's
	// namespace applies.
	Namespace     *string
	First, Last   *int
	After, Before *string
	// Filter is any value whose JSON is a filter in stored form: an object with the
	// members and, or, not, name, namespace, labels, conditions, createdAt, updatedAt,
	// spec and status; spec and status have the shape of the kind. Nil means no filter.
	Filter any
	// FieldNames are the names by which the caller knows the fields. Errors about the filter use
	// them.
	FieldNames failure.FieldNames
	// OrderBy has at most [plan.MaxCriteria] criteria. Ties are in the order of
	// (namespace, name).
	OrderBy []Order
	// Parent limits the page to resources that refer to it; the zero value means no
	// limit.
	Parent Parent
	// Names, if not nil, limits the page to these names in Namespace, or of a GLOBAL
	// kind; at most [filter.MaxValues]. The resources are read by their keys.
	Names []string
	// ChangeCursor requests [Page.ChangeCursor], taken before the first read.
	ChangeCursor bool
	// Ahead determines, with the read of the page, whether more follows in its direction.
	// Without it, [PageInfo.HasNextPage] and [PageInfo.HasPreviousPage] make a read of
	// their own.
	Ahead bool
	// Total counts the resources of the connection together with the page, if the kind is
	// read from the store. Without it, [Page.TotalCount] makes a read of its own, which may
	// see a later state.
	Total bool
}

// namespace returns the requested namespace, empty for all.
func (r *ListRequest) namespace() string {
	if r.Namespace != nil {
		return *r.Namespace
	}
	return r.Parent.Key.Namespace
}

// CheckOrder returns an error if an order may not have this many criteria.
func CheckOrder(criteria int) error { return plan.CheckCriteria(criteria) }

// Order is one criterion of an order.
type Order = plan.Criterion

// Parent is a resource, and the reference by which the resources of an inverse
// connection refer to it.
type Parent struct {
	// Reference is the path of that reference.
	Reference string
	Key       backend.Key
}

// connection is a query as the request has it.
type connection struct {
	plan.Query
	// named says that the request has names. narrowed says that the filter, not the request,
	// limits the namespace.
	named, narrowed bool
}

// prepare sets the connection from a request for a kind, and checks the request.
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

// hash identifies the connection in its cursors. It does not depend on how the
// connection is read.
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
