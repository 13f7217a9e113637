package service

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend/service/mirror"
)

// OwnerState is what this gateway knows of a resource service, at one moment.
type OwnerState struct {
	// Name is the one by which kinds name the service.
	Name  string
	State OwnerStatus
	// Problem says for operators why State is not [OwnerFollowed], or why a kind cannot be compared; empty if there is
	// nothing to say.
	Problem string
	// Lag is how long ago everything that the service has shown was mirrored; 0 while nothing is left to mirror.
	Lag time.Duration
	// Kinds are the kinds that the service owns, ordered by name.
	Kinds []OwnedKind
	// Compared is how many resources were compared with the mirror since this gateway has served the catalogue, and
	// Different how many of them differed.
	Compared, Different int64
	// Unreadable is how many resources the service could not show, or could not be stored, when they were last looked
	// at.
	Unreadable int
	// Unnamed is how many resources have keys that the API cannot have.
	Unnamed int
	// Held is how many resources seem to have vanished at once and are kept for a while: see package mirror.
	Held int
}

// OwnedKind is a kind that a resource service owns.
type OwnedKind struct {
	Name string
	// Followed reports whether the service tells of changes; else the kind is compared at shorter intervals.
	Followed bool
	// Problem says why nothing of the kind can be written, because the service contradicts the kind's SDL; empty if it
	// does not.
	Problem string
}

// OwnerStatus is how far the mirror of a resource service is.
type OwnerStatus string

// How far a mirror is.
const (
	// OwnerUnknown: the service is not configured on this gateway, so its kinds can only be read.
	OwnerUnknown OwnerStatus = "UNKNOWN"
	// OwnerConnecting: the service has not answered yet.
	OwnerConnecting OwnerStatus = "CONNECTING"
	// OwnerFilling: not everything that the service has was looked at yet.
	OwnerFilling OwnerStatus = "FILLING"
	// OwnerFollowed: everything was looked at, and changes are.
	OwnerFollowed OwnerStatus = "FOLLOWED"
	// OwnerUnavailable: the service has answered, and does not any more.
	OwnerUnavailable OwnerStatus = "UNAVAILABLE"
)

// Owners returns the states of the resource services that own kinds of the catalogue, ordered by name.
func (s *Service) Owners() []OwnerState {
	var out []OwnerState
	known := map[string]bool{}
	for _, m := range s.Writer.mirrors.States() {
		known[m.Name] = true
		out = append(out, ownerState(m))
	}
	for _, k := range s.Stored() {
		if k.Service == "" || known[k.Service] {
			continue
		}
		at := slices.IndexFunc(out, func(o OwnerState) bool { return o.Name == k.Service })
		if at < 0 {
			at = len(out)
			out = append(out, OwnerState{
				Name: k.Service, State: OwnerUnknown, Problem: "the service is not configured on this gateway",
			})
		}
		out[at].Kinds = append(out[at].Kinds, OwnedKind{Name: k.Name})
	}
	for _, of := range out {
		slices.SortFunc(of.Kinds, func(a, b OwnedKind) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(out, func(a, b OwnerState) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// ownerState returns the state of a service that is mirrored.
func ownerState(m mirror.State) OwnerState {
	out := OwnerState{
		Name:       m.Name,
		State:      OwnerFollowed,
		Lag:        m.Lag,
		Unreadable: m.Unreadable,
		Unnamed:    m.Unnamed,
		Held:       m.Held,
		Compared:   m.Listed,
		Different:  m.Differed,
	}
	for _, k := range m.Kinds {
		out.Kinds = append(out.Kinds, OwnedKind{Name: k.Name, Followed: k.Followed, Problem: k.Problem})
	}
	switch {
	case !m.Answered:
		out.State = OwnerConnecting
		out.Problem = "the service has not answered yet"
	case m.Problem != nil:
		out.State = OwnerUnavailable
		out.Problem = "the service does not answer"
	case !m.Filled:
		out.State = OwnerFilling
		out.Problem = "not everything that the service has was mirrored yet"
	case m.Endless != nil:
		out.Problem = "not everything can be compared"
	}
	switch {
	case m.Problem != nil:
		out.Problem += ": " + m.Problem.Error()
	case m.Answered && m.Endless != nil:
		out.Problem += ": " + m.Endless.Error()
	}
	return out
}

// ReviewerState is what a gateway knows of a resource service that reviews changes.
type ReviewerState struct {
	Name  string
	State ReviewerStatus
	// Problem says why State is neither ReviewerAnswers nor ReviewerUnasked, for operators; empty if it is one of them.
	Problem string
	// Kinds are the names of the kinds of which it reviews changes, ordered.
	Kinds []string
}

// ReviewerStatus says whether a resource service reviews changes.
type ReviewerStatus string

// Whether a service reviews changes.
const (
	// ReviewerUnknown: the service is not configured on this gateway.
	ReviewerUnknown ReviewerStatus = "UNKNOWN"
	// ReviewerUnasked: this gateway has not asked it yet.
	ReviewerUnasked ReviewerStatus = "UNASKED"
	// ReviewerAnswers: it decided when it was asked last.
	ReviewerAnswers ReviewerStatus = "ANSWERS"
	// ReviewerUnavailable: it did not decide when it was asked last.
	ReviewerUnavailable ReviewerStatus = "UNAVAILABLE"
)

// Reviewers returns the states of the resource services that review changes of kinds of the catalogue, ordered by name.
func (s *Service) Reviewers() []ReviewerState {
	kinds := map[string][]string{}
	for _, k := range s.Stored() {
		if k.Review != "" {
			kinds[k.Review] = append(kinds[k.Review], k.Name)
		}
	}
	var out []ReviewerState
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		one := s.Reviewer(name)
		one.Kinds = slices.Sorted(slices.Values(kinds[name]))
		out = append(out, one)
	}
	return out
}

// Reviewer returns the state of the resource service of a name as a reviewer, without its kinds.
func (s *Service) Reviewer(name string) ReviewerState {
	out := ReviewerState{Name: name, State: ReviewerUnasked}
	if !s.Asks(name) {
		out.State = ReviewerUnknown
		out.Problem = "the service is not configured on this gateway"
		return out
	}
	problem, asked := s.Writer.reviews.last(name)
	switch {
	case problem != "":
		out.State = ReviewerUnavailable
		out.Problem = problem
	case asked:
		out.State = ReviewerAnswers
	}
	return out
}
