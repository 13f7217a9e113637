package index

import (
	"slices"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// ReadSet records what is read from a view, as the read set of a transaction does: see [View.Recorded]. What was
// computed from these reads alone is the same in every view in which the set still holds: see [Basis]. It is safe for
// concurrent use. The zero value is ready.
type ReadSet struct {
	mu sync.Mutex // guards all below
	// view is the view whose reads are recorded. Its index is nil until there is one.
	view  View
	kinds []*Kind
	// space is the memory of a few kinds: most operations read from one to three.
	space [4]*Kind
	// positionRead reports whether the position of the view was read.
	positionRead bool
	incomplete   bool
}

// Recorded returns the view. What is read from it is recorded in s.
func (v View) Recorded(s *ReadSet) View {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view.index != nil { // what was read before is of another state
		s.incomplete = true
	}
	s.view = v
	v.reads = s
	return v
}

// Incomplete records that something was read which is not in the view, so that the set never holds. s may be nil.
func (s *ReadSet) Incomplete() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.incomplete = true
}

// addKind records that a kind was read; nil stands for one that the view does not serve. s may be nil.
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

// Basis is what a complete [ReadSet] depends on. It never changes and keeps no resources in memory.
type Basis struct {
	index *Index
	kinds []kindVersion
	// expires reports whether a resource of the kinds has an expiry. Then the basis holds from the clock of its view
	// until the next of them expires; the zero time is never.
	expires     bool
	from, until time.Time
	// position of the view, if it was read.
	position     backend.Position
	positionRead bool
}

// kindVersion is a kind, by its number, in one version.
type kindVersion struct {
	number  int
	version uint64
}

// Basis returns what the set depends on, false if it is incomplete or nothing was read.
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

// maxUnreadable is the most unreadable resources of a kind with which a read set of it has a basis: [Kind.nextExpiry]
// looks at each of them, because the index has no order of their expiries.
const maxUnreadable = 1000

// endAt makes the basis hold no longer than until a time; zero is never.
func (b *Basis) endAt(until time.Time) {
	if b.until.IsZero() || !until.IsZero() && until.Before(b.until) {
		b.until = until
	}
}

// Holds reports whether all that the basis depends on is the same in a view.
func (b *Basis) Holds(v *View) bool {
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

// AppendVersions appends a text that is equal for bases of equal versions only, of one index.
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

// nextExpiry returns when the first resource expires that has not expired at a time; zero for never.
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
