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

// ListRequest is a request for a page of a connection, as the Relay specification defines it.
type ListRequest struct {
	Kind string
	// Namespace is the namespace to list; nil for all. If Parent has a namespace, the namespace of Parent is listed.
	Namespace     *string
	First, Last   *int
	After, Before *string
	// Filter is any value that marshals to the JSON of a filter with stored names, or nil. A filter is an object with
	// the members and, or, not, name, namespace, labels, conditions, createdAt, updatedAt, spec and status; spec and
	// status have the fields of the kind.
	Filter any
	// FieldNames selects the names of fields in errors about the filter.
	FieldNames failure.FieldNames
	// OrderBy has at most [plan.MaxCriteria] criteria. Resources that are equal by them are ordered by namespace and
	// name.
	OrderBy []Order
	// Parent restricts the page to resources that refer to it. The zero value means no restriction.
	Parent Parent
	// Names restricts the page to resources with these names, in Namespace or of a GLOBAL kind. nil means no
	// restriction. There may be at most [filter.MaxValues] names. The resources are read by key.
	Names []string
	// ChangeCursor requests [Page.ChangeCursor]. The cursor is taken before the first read.
	ChangeCursor bool
	// Ahead makes the read of the page also find out whether more resources follow in the direction of the page.
	// Otherwise [PageInfo.HasNextPage] and [PageInfo.HasPreviousPage] make another read.
	Ahead bool
	// Total makes the read of the page also count the resources in the connection, for a kind that is read from the
	// store. Otherwise [Page.TotalCount] makes another read, which may see a later state.
	Total bool
}

// namespace returns the namespace of the request or of its parent; "" for all.
func (r *ListRequest) namespace() string {
	if r.Namespace != nil {
		return *r.Namespace
	}
	return r.Parent.Key.Namespace
}

// CheckOrder returns an error if an order has too many criteria. criteria is their number.
func CheckOrder(criteria int) error { return plan.CheckCriteria(criteria) }

// Order is a criterion of an order.
type Order = plan.Criterion

// Parent is a resource to which the listed resources refer.
type Parent struct {
	// Reference is the path of the reference by which they refer to the parent.
	Reference string
	Key       backend.Key
}

// connection is the query of a request.
type connection struct {
	plan.Query
	// named reports whether the request has names. narrowed reports whether the filter, and not the request, restricts
	// the namespace.
	named, narrowed bool
}

// prepare checks a request for a kind and sets the connection to its query.
func (c *connection) prepare(common *plan.Common, req *ListRequest) error {
	k := common.Kind
	*c = connection{Query: plan.Query{Common: common}, named: req.Names != nil}
	if req.Namespace != nil {
		c.Namespace = *req.Namespace
		if req.Parent.Key.Namespace == "" && req.Names == nil { // otherwise the namespace comes from a resource
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
		c.Names = append([]string{}, req.Names...) // not nil, which would mean all names
		slices.Sort(c.Names)
		c.Names = slices.Compact(c.Names)
	}
	requested := c.Namespace
	c.Narrow()
	c.narrowed = c.Namespace != requested
	return nil
}

// hash returns the number that identifies the connection in its cursors. It depends only on the request and not on how
// the connection is read.
func (c *connection) hash() uint32 {
	text := c.Filter.Text()
	if c.Reference != "" {
		text += fmt.Sprintf(" parent %q %q", c.Reference, c.ParentName)
	}
	if c.named {
		names, _ := json.Marshal(c.Names)               // strings always marshal
		text += `{"name":{"in":` + string(names) + `}}` // like the filter with the same meaning
	}
	requested := c.Namespace
	if c.narrowed {
		requested = ""
	}
	h := fnv.New32a()
	for _, part := range []string{c.Kind.Name, requested, text, c.Order.String()} {
		_, _ = h.Write(backend.AppendString(nil, part))
	}
	return h.Sum32()
}

// cursors returns the encoding of the connection's cursors.
func (c *connection) cursors() plan.Cursors {
	return plan.Cursors{Kind: c.Kind.Name, Hash: c.hash, IsKey: c.Order.IsKey}
}
