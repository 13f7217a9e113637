package service

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend/service/mirror"
)

// OwnerState describes what this gateway knows of a resource service that owns kinds.
type OwnerState struct {
	// Name is the name by which kinds declare the service.
	Name  string
	State OwnerStatus
	// Problem is the reason, for operators, why State is not [OwnerFollowed], or why a kind cannot be compared. It is
	// empty if there is no problem.
	Problem string
	// Lag is the maximum age of the mirror: all changes that the service made longer ago are mirrored. It is 0 if the
	// service answers and no resource waits to be compared.
	Lag time.Duration
	// Kinds lists the kinds that the service owns, ordered by name.
	Kinds []OwnedKind
	// Compared is how many resources of the service were compared with their records since this gateway began to serve
	// the catalogue. Different is how many of these differed from their records.
	Compared, Different int64
	// Unreadable is the number of resources that the service could not show, or that could not be stored, when they
	// were last compared.
	Unreadable int
	// Unnamed is the number of resources whose keys are not valid in the API.
	Unnamed int
	// Held is the number of resources that the service suddenly no longer has. Their records are kept for a while, in
	// case this is a mistake: see package mirror.
	Held int
}

// OwnedKind is a kind that a resource service owns.
type OwnedKind struct {
	Name string
	// Followed reports whether the service announces changes of the kind. If it does not, the gateway compares the kind
	// more often.
	Followed bool
	// Problem describes how the service contradicts the kind's SDL. Then resources of the kind cannot be written. It is
	// empty if there is no contradiction.
	Problem string
}

// OwnerStatus is the state of the mirror of a resource service.
type OwnerStatus string

// The states of a mirror.
const (
	// OwnerUnknown: the service is not configured on this gateway, so its kinds can only be read.
	OwnerUnknown OwnerStatus = "UNKNOWN"
	// OwnerConnecting: the service has not answered yet.
	OwnerConnecting OwnerStatus = "CONNECTING"
	// OwnerFilling: some resources of the service were not compared yet.
	OwnerFilling OwnerStatus = "FILLING"
	// OwnerFollowed: all resources were compared, and changes are mirrored as they happen.
	OwnerFollowed OwnerStatus = "FOLLOWED"
	// OwnerUnavailable: the service has answered before and does not answer now.
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

// ownerState returns the state of a mirrored service.
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

// ReviewerState describes what this gateway knows of a resource service that reviews changes.
type ReviewerState struct {
	Name  string
	State ReviewerStatus
	// Problem is the reason, for operators, why the service does not answer. It is empty if State is ReviewerAnswers or
	// ReviewerUnasked.
	Problem string
	// Kinds lists the kinds whose changes the service reviews, sorted by name.
	Kinds []string
}

// ReviewerStatus is the state of a resource service as a reviewer.
type ReviewerStatus string

// The states of a reviewer.
const (
	// ReviewerUnknown: the service is not configured on this gateway.
	ReviewerUnknown ReviewerStatus = "UNKNOWN"
	// ReviewerUnasked: this gateway has not asked the service yet.
	ReviewerUnasked ReviewerStatus = "UNASKED"
	// ReviewerAnswers: the latest review of the service gave a decision.
	ReviewerAnswers ReviewerStatus = "ANSWERS"
	// ReviewerUnavailable: the latest review of the service gave no decision.
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

// Reviewer returns the state of the reviewer with a name. It does not set Kinds.
func (s *Service) Reviewer(name string) ReviewerState {
	out := ReviewerState{Name: name, State: ReviewerUnasked}
	if !s.Asks(name) {
		out.State = ReviewerUnknown
		out.Problem = "the service is not configured on this gateway"
		return out
	}
	problem, reviewed := s.Writer.reviews.last(name)
	switch {
	case problem != "":
		out.State = ReviewerUnavailable
		out.Problem = problem
	case reviewed:
		out.State = ReviewerAnswers
	}
	return out
}
