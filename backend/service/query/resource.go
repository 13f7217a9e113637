package query

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// Resource is a stored resource and its body as it was read, nil if it is
// unreadable.
type Resource struct {
	Stored *backend.Resource
	Body   *body.Body
}
