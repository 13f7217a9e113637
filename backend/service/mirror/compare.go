package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
)

const (
	// listSize is the maximum number of resources in a page of a list.
	listSize = 500
	// DefaultCompareInterval is the default pause between two comparisons of a kind.
	DefaultCompareInterval = 10 * time.Minute
	// UnfollowedInterval is the default pause between comparisons of a kind whose changes the service does not
	// announce.
	UnfollowedInterval = 30 * time.Second
	// maxListed is the maximum number of resources of a kind that are compared. A longer list counts as endless.
	maxListed = 5_000_000
	// maxIdlePages is the maximum number of consecutive pages without a new resource.
	maxIdlePages = 1000
	// If more than leastHeld resources, and more than half of their kind, are suddenly absent, the service may have
	// lost its data. Their records are then kept for holdTime.
	holdTime  = 10 * time.Minute
	leastHeld = 100
)

// compareAll compares kinds until ctx ends. It compares each kind at the interval of the kind, and all kinds when a
// comparison is requested by compareNow.
func (m *Mirror) compareAll(ctx context.Context) {
	due := map[string]time.Time{}
	for {
		now, alive := m.awaitDue(ctx, earliest(due))
		if !alive {
			return
		}
		if now {
			for _, k := range m.kinds {
				due[k.Name] = time.Now()
			}
		}
		m.compareDue(ctx, due)
	}
}

// awaitDue waits until due, or forever if due is zero. If a comparison of all kinds is requested first, it returns with
// now set. If ctx ends first, alive is false.
func (m *Mirror) awaitDue(ctx context.Context, due time.Time) (now, alive bool) {
	var alarm <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-m.compareNow:
		return true, true
	case <-alarm:
		return false, true
	case <-ctx.Done():
		return false, false
	}
}

// earliest returns the earliest of the times; the zero time if there are none.
func earliest(of map[string]time.Time) (first time.Time) {
	for _, at := range of {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// compareDue compares the kinds that are due, and sets the times of their next comparisons.
func (m *Mirror) compareDue(ctx context.Context, due map[string]time.Time) {
	now := time.Now()
	for _, k := range m.kinds {
		if due[k.Name].After(now) {
			continue
		}
		begin := time.Now()
		pause, err := m.compare(ctx, k)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.logOnce.Warn("comparing a kind of a service failed and is tried again",
				zap.String("kind", k.Name), zap.Error(err))
			pause = maxRetryPause
			if errors.Is(err, errEndless) {
				m.noteEndless(k, err)
				pause = UnfollowedInterval
			}
		} else {
			m.noteCompared(k, begin)
		}
		due[k.Name] = time.Now().Add(pause + rand.N(pause/10+1))
	}
}

// compare compares all resources of a kind. It returns the pause until the next comparison of the kind.
func (m *Mirror) compare(ctx context.Context, k *kind.Kind) (pause time.Duration, err error) {
	m.mu.Lock()
	described := m.description
	m.mu.Unlock()
	pause = DefaultCompareInterval
	if described != nil {
		can, known := capabilities(*described, k.Name)
		if !known {
			return pause, nil // the service no longer has the kind; its records stay
		}
		if !can.Changes {
			pause = UnfollowedInterval
		}
	}
	pause = cmp.Or(m.cfg.CompareIntervals[m.name], pause)
	begin := time.Now()
	listed, differ, err := m.compareListed(ctx, k)
	if err != nil {
		return 0, err
	}
	gone, err := m.compareUnlisted(ctx, k, listed)
	if err != nil {
		return 0, err
	}
	if left := m.hold(k, gone.absent, gone.records); left > 0 {
		return min(pause, left), nil
	}
	m.look(ctx, gone.absent...)
	m.look(ctx, m.unlistedNotes(k, listed, begin)...)
	if n := differ + len(gone.absent); n > 0 {
		m.log.Info("what the service has differed from its mirror", zap.String("kind", k.Name), zap.Int("resources", n),
			zap.Int("of", len(listed)), zap.Duration("compared in", time.Since(begin)))
	}
	return pause, nil
}

// unlistedNotes returns the resources of a kind that were noted as unreadable and were not in the list. They may no
// longer exist. It also forgets the invalid names that were not in the list. begin is the time at which reading the
// list began.
func (m *Mirror) unlistedNotes(k *kind.Kind, listed map[backend.Key]bool, begin time.Time) (out []backend.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.unreadable {
		if key.Kind == k.Name && !listed[key] {
			out = append(out, key)
		}
	}
	maps.DeleteFunc(m.unnamed, func(key backend.Key, at time.Time) bool {
		return key.Kind == k.Name && at.Before(begin)
	})
	return out
}

// compareListed compares the listed resources of a kind with their records, and calls look for those that differ. It
// returns the listed keys and the number of differences.
func (m *Mirror) compareListed(
	ctx context.Context, k *kind.Kind,
) (listed map[backend.Key]bool, differ int, err error) {
	listed = map[backend.Key]bool{}
	pages := pageTokens{kind: k.Name}
	for token := ""; ; {
		page, err := m.list(ctx, k.Name, token)
		if err != nil {
			return nil, 0, err
		}
		keys := make([]backend.Key, 0, len(page.Resources))
		shown := map[backend.Key]*owner.Resource{}
		for i := range page.Resources {
			r := &page.Resources[i]
			if listed[r.Key] || r.Kind != k.Name || !m.owns(r.Key) {
				continue
			}
			listed[r.Key] = true
			shown[r.Key] = r
			keys = append(keys, r.Key)
		}
		for _, bad := range page.Unreadable {
			if !listed[bad.Key] && bad.Kind == k.Name && m.owns(bad.Key) {
				listed[bad.Key] = true
				why := shortened(bad.Message)
				m.noteUnreadable(bad.Key, fmt.Errorf("%w: the service cannot show it: %s", errUnstorable, why))
			}
		}
		records, err := m.read(ctx, keys)
		if err != nil {
			return nil, 0, err
		}
		var look []backend.Key
		for _, rec := range records {
			if !m.isListed(ctx, rec, shown[rec.key]) {
				look = append(look, rec.key)
			}
		}
		differ += len(look)
		m.noteDifferences(len(keys), len(look))
		m.warnOfFill(k, differ)
		m.look(ctx, look...)
		if page.Next == "" {
			return listed, differ, nil
		}
		if err := pages.next(page.Next, len(listed)); err != nil {
			return nil, 0, err
		}
		token = page.Next
	}
}

// errEndless is the error for a list that does not end.
var errEndless = errors.New("the list of the service does not end")

// pageTokens detects a list that does not end.
type pageTokens struct {
	kind string
	// seen has the tokens since the last page with a new resource. listed is the number of resources up to this page.
	seen   map[string]bool
	listed int
}

// next returns an error if the list does not seem to end. This is so if a token repeats without a new resource in
// between, if too many consecutive pages have no new resource, or if the list has too many resources. listed is the
// number of different resources so far.
func (p *pageTokens) next(token string, listed int) error {
	if listed > p.listed || p.seen == nil {
		p.listed = listed
		p.seen = map[string]bool{}
	}
	switch {
	case p.seen[token]:
		return fmt.Errorf("kind %s: %w: a page token comes again, after %d resources", p.kind, errEndless, listed)
	case len(p.seen) >= maxIdlePages:
		return fmt.Errorf("kind %s: %w: %d pages in a row showed nothing new, after %d resources",
			p.kind, errEndless, len(p.seen), listed)
	case listed > maxListed:
		return fmt.Errorf("kind %s: %w: it has more than %d resources, which are the most that are accepted",
			p.kind, errEndless, maxListed)
	}
	p.seen[token] = true
	return nil
}

// warnOfFill logs a warning, once for each kind, if mirroring the differences takes more than half of the changes that
// the store's log keeps.
func (m *Mirror) warnOfFill(k *kind.Kind, differ int) {
	if m.cfg.RetainEntries <= 0 || differ <= m.cfg.RetainEntries/2 || m.warned[k.Name] {
		return
	}
	m.warned[k.Name] = true
	m.log.Warn("mirroring what differs writes more changes than half of what the store keeps, so cursors of clients may "+
		"expire: to avoid that, raise retain-entries above twice the number of resources before a service is filled",
		zap.String("kind", k.Name), zap.Int("resources that differ until now", differ),
		zap.Int("retain-entries", m.cfg.RetainEntries))
}

// list reads a page of a kind from the service. Only the last page of a list counts as its success: see noteAnswer.
func (m *Mirror) list(ctx context.Context, kind, token string) (owner.Page, error) {
	asking, cancel := context.WithTimeout(access.WithoutCaller(ctx), callTimeout)
	defer cancel()
	page, err := m.service.List(asking, kind, token, listSize)
	if err == nil {
		m.noteAnswer(ctx, otherCall, nil)
	} else {
		m.noteAnswer(ctx, listCall(kind), err)
	}
	return page, err
}

// unlisted describes records whose resources a list did not show.
type unlisted struct {
	// absent are the keys whose resources the service does not have.
	absent []backend.Key
	// records is the number of records of the kind.
	records int
}

// compareUnlisted finds the records whose resources were not listed. It reads each of these resources from the service,
// because a list may be outdated.
func (m *Mirror) compareUnlisted(ctx context.Context, k *kind.Kind, listed map[backend.Key]bool) (unlisted, error) {
	var out unlisted
	var missing []backend.Key
	all := backend.Range{Kind: k.Name, KeysOnly: true, Limit: backend.MaxLimit}
	for page, err := range backend.Pages(ctx, m.own.Store, all) {
		if err != nil {
			return out, err
		}
		keys := slices.Clone(page.Unreadable)
		for _, r := range page.Resources {
			keys = append(keys, r.Key)
		}
		out.records += len(keys)
		for _, key := range keys {
			if !listed[key] && m.owns(key) {
				missing = append(missing, key)
			}
		}
	}
	for some := range slices.Chunk(missing, owner.MaxKeys) {
		got, err := m.get(ctx, some)
		m.noteAnswer(ctx, otherCall, err)
		if err != nil {
			return out, err
		}
		for i, one := range got {
			if one.Resource == nil && one.Unreadable == "" {
				out.absent = append(out.absent, some[i])
			}
		}
	}
	return out, nil
}

// hold returns how long the records of absent resources must still be kept because too many resources are absent at
// once: see holdTime. It returns 0 if few are absent, or if their records were kept long enough.
func (m *Mirror) hold(k *kind.Kind, absent []backend.Key, records int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(absent) <= leastHeld || 2*len(absent) <= records {
		delete(m.held, k.Name)
		return 0
	}
	now := time.Now()
	h, held := m.held[k.Name]
	if !held {
		h.since = now
		m.log.Error("most resources of a kind have vanished from the service at once: they are kept for a while",
			zap.String("kind", k.Name), zap.Int("vanished", len(absent)), zap.Int("of", records),
			zap.Duration("for", holdTime))
	}
	h.count = len(absent)
	left := h.since.Add(holdTime).Sub(now)
	if left <= 0 {
		delete(m.held, k.Name)
		m.log.Error("most resources of a kind have vanished from the service, and are deleted now",
			zap.String("kind", k.Name), zap.Int("vanished", len(absent)), zap.Int("of", records))
		return 0
	}
	m.held[k.Name] = h
	return left
}
