package query

import "github.com/sluicegw/sluice/backend"

// ListRequest asks for a page of a connection by the Relay specification.
type ListRequest struct {
	Kind string
	// Namespace nil means all.
	Namespace     *string
	First, Last   *int
	After, Before *string
	// Filter is anything whose JSON is the filter in stored form: the members
	// and, or, not, name, namespace, labels, conditions, createdAt, updatedAt,
	// spec and status, the last two shaped like the kind. Nil keeps everything.
	Filter any
	// OrderBy goes before the order of (namespace, name); at most MaxOrders.
	OrderBy []Order
	// Parent leaves only what refers to a resource; the zero value leaves everything.
	Parent Parent
	// Names, if not nil, leaves only the resources of these names in Namespace, or
	// of a GLOBAL kind: at most MaxFilterValues. They are read by their keys. They must
	// not change while the page is used.
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

// Order is one criterion of an order. Nulls come first, and last if descending.
type Order struct {
	// Field is "name", "namespace", "createdAt", "updatedAt" or the path of a sortable index.
	Field      string
	Descending bool
}

// Parent is the resource that the resources of an inverse connection refer to.
type Parent struct {
	// Reference is the path of the reference by which they do.
	Reference string
	Key       backend.Key
}
