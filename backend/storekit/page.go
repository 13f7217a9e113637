package storekit

import (
	"time"

	"github.com/sluicegw/sluice/backend"
)

// PageBuilder builds pages of a [backend.Range] from the stored resources. The driver adds them in the order of the
// range.
type PageBuilder struct {
	r    backend.Range
	now  time.Time
	size int
	page backend.Page
	// skipped are the keys of unreadable resources after the last resource of the page.
	skipped []backend.Key
}

// NewPageBuilder returns a builder for the pages of one call. Resources that are expired at the time now are left out.
// [PageBuilder.Next] must be called before each page.
func NewPageBuilder(now time.Time) *PageBuilder { return &PageBuilder{now: now} }

// First returns the first of pages, or err. A driver implements Range with it, as a call of Ranges with one range.
func First(pages []backend.Page, err error) (backend.Page, error) {
	if err != nil {
		return backend.Page{}, err
	}
	return pages[0], nil
}

// Next begins the page of another range, which must be valid. All pages of a builder share the limit of bytes.
// [PageBuilder.Page] must have been called for the previous one.
func (b *PageBuilder) Next(r backend.Range) {
	b.r = r
	b.page = backend.Page{}
	b.skipped = nil
}

// Add adds the next stored resource, which may be expired. It reports whether the driver must add more.
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

// Skip adds the key of the next stored resource, which cannot be decoded.
func (b *PageBuilder) Skip(k backend.Key) {
	if !b.r.Count {
		b.skipped = append(b.skipped, k)
	}
}

// Page returns the page that was begun by the last call of Next. It must be called when Add has returned false or the
// range has ended.
func (b *PageBuilder) Page() backend.Page {
	page := b.page
	if !page.More {
		page.Unreadable = append(page.Unreadable, b.skipped...)
	}
	return page
}
