package mirror

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// Names of calls in health. The failure of a call is kept until a call of the same name succeeds. So a service that
// answers only some calls does not seem to recover again and again. All rare calls have the name otherCall, whose
// failure is cleared by any answer.
const (
	otherCall    = ""
	changesCall  = "Changes"
	describeCall = "Describe"
)

// listCall returns the name of the calls that list a kind.
func listCall(kind string) string { return "List " + kind }

// health is the health of a service. It is guarded by mu of its mirror.
type health struct {
	// answered is the time of the service's last answer; zero if there was none. failures maps the name of a call to
	// its latest error, if the call has not succeeded since.
	answered time.Time
	failures map[string]error
	// endless maps the name of a kind to the error of its last list, if the list did not end.
	endless map[string]error
	// listed counts the resources that were listed. differed counts those that differed from their records.
	listed, differed int64
	// compared maps the name of a kind to the time at which its last complete comparison began. found is when all kinds
	// were compared for the first time; zero until then. filled reports whether all differences found until then are
	// mirrored.
	compared map[string]time.Time
	found    time.Time
	filled   bool
}

// noteAnswer records the result of a call. It ignores an error that was caused by the end of ctx.
func (m *Mirror) noteAnswer(ctx context.Context, call string, err error) {
	if err != nil && ctx.Err() != nil {
		return // the caller has gone
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && !errors.Is(err, owner.ErrUnimplemented) {
		m.failures[call] = err
		return
	}
	m.answered = time.Now()
	delete(m.failures, call)
	delete(m.failures, otherCall)
	if call == changesCall {
		delete(m.failures, describeCall) // Describe is called again only if Changes fails
	}
}

// problem returns the first failure, ordered by the names of the calls; nil if there is none.
func (h *health) problem() error {
	for _, call := range slices.Sorted(maps.Keys(h.failures)) {
		return h.failures[call]
	}
	return nil
}

// noteDifferences counts the compared resources of a page.
func (m *Mirror) noteDifferences(listed, differed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed += int64(listed)
	m.differed += int64(differed)
}

// noteEndless records that the list of a kind did not end.
func (m *Mirror) noteEndless(k *kind.Kind, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.failures, listCall(k.Name))
	m.endless[k.Name] = why
}

// noteCompared records that a comparison of a kind has succeeded. begin is when it began.
func (m *Mirror) noteCompared(k *kind.Kind, begin time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.endless, k.Name)
	delete(m.failures, listCall(k.Name))
	m.compared[k.Name] = begin
	if m.found.IsZero() && len(m.compared) == len(m.kinds) {
		m.found = time.Now()
	}
}

// State is the state of a service and its mirror.
type State struct {
	Name string
	// Answered reports whether the service has ever answered. Problem is the latest failure of a call that has not
	// succeeded since; nil if there is none.
	Answered bool
	Problem  error
	// Filled reports whether all resources of the service were compared at least once.
	Filled bool
	// Endless is the error of a kind whose list does not end; nil if all lists end.
	Endless error
	// Listed is how many resources were compared since this gateway began to serve the catalogue. Differed is how many
	// of these differed from their records.
	Listed, Differed int64
	// Lag is the maximum age of the mirror: all changes that the service made longer ago are mirrored. It is 0 if no
	// key is queued and the service answers.
	Lag   time.Duration
	Kinds []KindState
	// Unreadable is the number of resources that cannot be mirrored. Unnamed is the number of resources whose names are
	// invalid in the API. Held is the number of records that are kept although their resources are absent: see
	// holdTime.
	Unreadable, Unnamed, Held int
}

// KindState describes the mirror of a kind.
type KindState struct {
	Name string
	// Followed reports whether the service announces changes of the kind.
	Followed bool
	// Problem is the reason why resources of the kind cannot be written; "" if they can.
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
		Problem:    m.problem(),
		Filled:     m.filled,
		Listed:     m.listed,
		Differed:   m.differed,
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
	for _, name := range slices.Sorted(maps.Keys(m.endless)) {
		out.Endless = cmp.Or(out.Endless, m.endless[name])
	}
	if out.Problem != nil && m.answered.Before(seen) {
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
