package backend

import "time"

// PageBuilder makes the answer to a [Range] out of the stored resources that a
// driver's scan meets, in the order of the range.
type PageBuilder struct {
	r    Range
	now  time.Time
	size int
	page Page
}

// NewPageBuilder begins the page of a valid range; what is expired by now is left out.
func NewPageBuilder(r Range, now time.Time) *PageBuilder { return &PageBuilder{r: r, now: now} }

// Next begins the page of another range of the same call, which shares the bytes.
func (b *PageBuilder) Next(r Range) *PageBuilder {
	return &PageBuilder{r: r, now: b.now, size: b.size}
}

// Add takes the next resource of the scan, expired or not, and says whether to go on.
func (b *PageBuilder) Add(r *Resource) bool {
	if r.ExpiredAt(b.now) || b.r.Namespace != "" && r.Namespace != b.r.Namespace {
		return true
	}
	if b.r.Count {
		b.page.Count++
		return true
	}
	n := len(b.page.Resources)
	if n == b.r.Limit || n > 0 && b.size+r.Size() > MaxPageBytes {
		b.page.More = true
		return false
	}
	b.size += r.Size()
	b.page.Resources = append(b.page.Resources, r)
	return true
}

// Page returns what was built.
func (b *PageBuilder) Page() Page { return b.page }
