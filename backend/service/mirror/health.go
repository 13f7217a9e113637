package mirror

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// health is how a mirror is. Its mirror's mu guards it.
type health struct {
	// answered is when the service answered last, zero for never, and problem why it has not since; nil if it has.
	answered time.Time
	problem  error
	// compared is, by kind, the start of the last comparison that has ended. found is the time at which all kinds had
	// been compared once, zero before; filled says that everything which was found until then has been handled.
	compared map[string]time.Time
	found    time.Time
	filled   bool
}

// noteAnswer notes whether the service has answered a call.
func (m *Mirror) noteAnswer(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return // the caller has gone
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil || errors.Is(err, owner.ErrUnimplemented) {
		m.answered = time.Now()
		m.problem = nil
		return
	}
	m.problem = err
}

// noteCompared notes that a comparison of a kind has ended.
func (m *Mirror) noteCompared(k *kind.Kind, begin time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.compared[k.Name] = begin
	if m.found.IsZero() && len(m.compared) == len(m.kinds) {
		m.found = time.Now()
	}
}

// State is what is known of a service and its mirror.
type State struct {
	Name string
	// Answered reports whether the service has ever answered, and Problem why it has not since; nil if it has.
	Answered bool
	Problem  error
	// Filled reports whether everything that the service has was looked at.
	Filled bool
	// Lag is how long ago everything that the service has shown was mirrored; 0 while nothing is left to mirror.
	Lag   time.Duration
	Kinds []KindState
	// Unreadable, Unnamed and Held count resources: those that cannot be mirrored, those that the API cannot name, and
	// those that seem to have vanished at once.
	Unreadable, Unnamed, Held int
}

// KindState is what is known of a kind.
type KindState struct {
	Name string
	// Followed reports whether the service tells of changes.
	Followed bool
	// Problem says why the kind cannot be written; empty if it can.
	Problem string
}

// States returns the states of all mirrors, ordered by name.
func (s *Mirrors) States() []State {
	out := make([]State, 0, len(s.byName))
	for _, m := range s.byName {
		out = append(out, m.state())
	}
	slices.SortFunc(out, func(a, b State) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (m *Mirror) state() State {
	oldest, waits := m.looks.oldest()
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.found.IsZero() && (!waits || oldest.After(m.found)) {
		m.filled = true
	}
	out := State{
		Name:       m.name,
		Answered:   !m.answered.IsZero(),
		Problem:    m.problem,
		Filled:     m.filled,
		Unreadable: len(m.unreadable),
		Unnamed:    len(m.unnamed),
	}
	for _, k := range m.kinds {
		one := KindState{Name: k.Name, Problem: m.problems[k.Name]}
		if m.description != nil {
			can, _ := capabilities(*m.description, k.Name)
			one.Followed = can.Changes
		}
		out.Kinds = append(out.Kinds, one)
	}
	slices.SortFunc(out.Kinds, func(a, b KindState) int { return cmp.Compare(a.Name, b.Name) })
	for _, h := range m.held {
		out.Held += h.count
	}
	seen := now
	if waits {
		seen = oldest
	}
	if m.problem != nil && m.answered.Before(seen) {
		seen = m.answered
	}
	for _, one := range out.Kinds {
		if at := m.compared[one.Name]; !one.Followed && at.Before(seen) {
			seen = at
		}
	}
	if !seen.IsZero() {
		out.Lag = now.Sub(seen)
	}
	return out
}
