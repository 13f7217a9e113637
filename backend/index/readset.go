package index

import (
	"slices"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// ReadSet records what is read from a view: see [View.Recorded]. If a result was computed only from these reads, it is
// the same in every view in which the [Basis] of the set holds. The zero value is an empty set. A ReadSet is safe for
// concurrent use.
type ReadSet struct {
	mu sync.Mutex // guards all below
	// view is the view whose reads are recorded. Its index is nil until there is one.
	view  View
	kinds []*Kind
	// space is the initial memory of kinds, since most operations read one to three kinds.
	space [4]*Kind
	// positionRead reports whether the position of the view was read.
	positionRead bool
	incomplete   bool
}

// Recorded returns a view like v whose reads are recorded in s.
func (v View) Recorded(s *ReadSet) View {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view.index != nil { // earlier reads were of another state
		s.incomplete = true
	}
	s.view = v
	v.reads = s
	return v
}

// Incomplete records that something other than the view was read, so that the set has no basis. s may be nil.
func (s *ReadSet) Incomplete() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.incomplete = true
}

// addKind records that a kind was read. k is nil if the view does not serve the kind. s may be nil.
func (s *ReadSet) addKind(k *Kind) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k == nil {
		s.incomplete = true
		return
	}
	if slices.Contains(s.kinds, k) {
		return
	}
	if s.kinds == nil {
		s.kinds = s.space[:0]
	}
	s.kinds = append(s.kinds, k)
}

// addPosition records that the position of the view was read. s may be nil.
func (s *ReadSet) addPosition() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.positionRead = true
}

// Basis is what the results of a [ReadSet] depend on. It is immutable and keeps no resources in memory.
type Basis struct {
	index *Index
	kinds []kindVersion
	// expires reports whether any resource of the kinds expires. If so, the basis is valid only in views that were
	// taken at or after from, the time of its own view, and before until, the time of the next expiry. until is zero
	// if there is no further expiry.
	expires     bool
	from, until time.Time
	// position is the position of the view, if it was read.
	position     backend.Position
	positionRead bool
}

// kindVersion is a version of a kind, which is identified by its number.
type kindVersion struct {
	number  int
	version uint64
}

// Basis returns the basis of the set. ok is false if the set is incomplete or nothing was read.
func (s *ReadSet) Basis() (b Basis, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.incomplete || s.view.index == nil || len(s.kinds) == 0 && !s.positionRead {
		return Basis{}, false
	}
	b = Basis{index: s.view.index, from: s.view.now, positionRead: s.positionRead}
	if s.positionRead {
		b.position = s.view.position
	}
	b.kinds = make([]kindVersion, len(s.kinds))
	for i, k := range s.kinds {
		b.kinds[i] = kindVersion{k.of.number, k.version}
		unreadable := k.Unreadable(Run{})
		if unreadable > maxUnreadable {
			return Basis{}, false
		}
		if k.tree(expiryIndex).root.len() > 0 || unreadable > 0 {
			b.expires = true
			b.endAt(k.nextExpiry(b.from))
		}
	}
	return b, true
}

// maxUnreadable is the maximum number of unreadable resources that a kind in a basis may have. [Kind.nextExpiry] visits
// each of them, because no index orders them by expiry.
const maxUnreadable = 1000

// endAt restricts the time until which the basis holds. The zero time means no restriction.
func (b *Basis) endAt(until time.Time) {
	if b.until.IsZero() || !until.IsZero() && until.Before(b.until) {
		b.until = until
	}
}

// ValidIn reports whether everything that the basis depends on is the same in a view.
func (b *Basis) ValidIn(v *View) bool {
	if v.index == nil || v.index != b.index {
		return false
	}
	for _, read := range b.kinds {
		k := v.kinds[read.number]
		if k == nil || k.version != read.version {
			return false
		}
	}
	if b.expires && (v.now.Before(b.from) || !b.until.IsZero() && !v.now.Before(b.until)) {
		return false
	}
	return !b.positionRead || v.position.Equal(b.position)
}

// AppendVersions appends a text that is equal for two bases of the same index only if all their versions are equal.
func (b *Basis) AppendVersions(dst []byte) []byte {
	for _, read := range b.kinds {
		dst = backend.AppendInt(dst, int64(read.number))
		dst = backend.AppendInt(dst, int64(read.version))
	}
	if b.positionRead {
		dst = append(dst, b.position.String()...)
	}
	return dst
}

// nextExpiry returns the first expiry after now; zero if there is none.
func (k *Kind) nextExpiry(now time.Time) (next time.Time) {
	run := Run{Start: backend.AppendInt(nil, now.UnixMilli())}
	k.tree(expiryIndex).scan(run, false, func(i item[*slot]) bool {
		e := k.entry(i.of)
		if e.ExpiredAt(now) {
			return true
		}
		next = e.Resource.ExpiresAt
		return false
	})
	for e := range k.EachUnreadable(Run{}) {
		if at := e.Resource.ExpiresAt; e.expires && !e.ExpiredAt(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
