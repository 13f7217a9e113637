package service

import (
	"cmp"
	"slices"
	"time"
)

// OwnerState is what this gateway knows of a resource service, at one moment.
type OwnerState struct {
	// Name is the one by which kinds name the service.
	Name  string
	State OwnerStatus
	// Problem says why the service is not [OwnerFollowed], for operators; empty if it is.
	Problem string
	// Lag is how long ago everything that the service has shown was mirrored; 0 while nothing is left to mirror.
	Lag time.Duration
	// Kinds are the kinds that the service owns, ordered by name.
	Kinds []OwnedKind
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
	// Followed reports whether the service tells of changes; else the kind is compared every 30 s.
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
	states := map[string]*OwnerState{}
	for _, k := range s.Stored() {
		if k.Service == "" {
			continue
		}
		of := states[k.Service]
		if of == nil {
			of = &OwnerState{Name: k.Service, State: OwnerUnknown, Problem: "the service is not configured on this gateway"}
			states[k.Service] = of
			if s.cfg.Owners[k.Service] != nil {
				of.State = OwnerConnecting
				of.Problem = "the service has not answered yet"
			}
		}
		of.Kinds = append(of.Kinds, OwnedKind{Name: k.Name})
	}
	out := make([]OwnerState, 0, len(states))
	for _, of := range states {
		slices.SortFunc(of.Kinds, func(a, b OwnedKind) int { return cmp.Compare(a.Name, b.Name) })
		out = append(out, *of)
	}
	slices.SortFunc(out, func(a, b OwnerState) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
