package storekit

import (
	"time"

	"github.com/sluicegw/sluice/backend"
)

// PageBuilder builds the answer to a [backend.Range] from the stored resources that a
// driver's scan finds, in the order of the range.
type PageBuilder struct {
	r    backend.Range
	now  time.Time
	size int
	page backend.Page
	// skipped are the keys of resources after the last one of the page that do not decode.
	skipped []backend.Key
}

// NewPageBuilder returns a builder for the pages of one call, which leave out resources
// expired at now. Begin each page with [PageBuilder.Next].
func NewPageBuilder(now time.Time) *PageBuilder { return &PageBuilder{now: now} }

// First returns the only page of a call of Ranges.
func First(pages []backend.Page, err error) (backend.Page, error) {
	if err != nil {
		return backend.Page{}, err
	}
	return pages[0], nil
}

// Next begins the page of another valid range of the same call, which shares the limit
// of bytes. The previous page must have been taken.
func (b *PageBuilder) Next(r backend.Range) {
	b.r = r
	b.page = backend.Page{}
	b.skipped = nil
}

// Add adds the next resource of the scan, expired or not, and reports whether to
// continue.
func (b *PageBuilder) Add(r *backend.Resource) bool {
	if r.ExpiredAt(b.now) || b.r.Namespace != "" && r.Namespace != b.r.Namespace {
		return true
	}
	if b.r.Count {
		b.page.Count++
		return true
	}
	n, size := len(b.page.Resources), r.Size()
	if n == b.r.Limit || n > 0 && b.size+size > backend.MaxPageBytes {
		b.page.More = true
		return false
	}
	b.size += size
	b.page.Unreadable, b.skipped = append(b.page.Unreadable, b.skipped...), nil
	b.page.Resources = append(b.page.Resources, r)
	return true
}

// Skip records that the next resource of the scan does not decode.
func (b *PageBuilder) Skip(k backend.Key) {
	if !b.r.Count {
		b.skipped = append(b.skipped, k)
	}
}

// Page returns the page.
func (b *PageBuilder) Page() backend.Page {
	page := b.page
	if !page.More {
		page.Unreadable = append(page.Unreadable, b.skipped...)
	}
	return page
}
