package ownertest

import (
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// This file has the changes that the team of the service itself makes to its resources, without a gateway.

// Put stores a resource with a new tag. A resource without UID keeps the UID of the stored resource, or gets a new one.
func (s *Service) Put(r owner.Resource) owner.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.putOwn(r)
}

// Update changes an existing resource by calling change. It reports whether the resource exists.
func (s *Service) Update(key backend.Key, change func(r *owner.Resource)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, there := s.resources[key]
	if there {
		change(&r)
		s.putOwn(r)
	}
	return there
}

// putOwn is like Put. The caller holds mu.
func (s *Service) putOwn(r owner.Resource) owner.Resource {
	k, err := s.kind(r.Kind)
	if err != nil {
		panic(err)
	}
	if r.UID == "" {
		r.UID = s.resources[r.Key].UID
	}
	if r.UID == "" {
		s.uids++
		r.UID = fmt.Sprintf("%s-%d", s.name, s.uids)
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = time.Now().UTC().Truncate(time.Millisecond)
	}
	r.Tag = tagOf(k, r)
	s.put(r)
	return r
}

// Remove removes a resource, and reports whether there was one. It also removes a resource that is marked for deletion.
func (s *Service) Remove(key backend.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.resources[key]
	delete(s.resources, key)
	delete(s.unreadable, key)
	s.note(key)
	return there
}

// MakeUnreadable makes a resource unreadable until the next Put. why is the reason that Get and List return.
func (s *Service) MakeUnreadable(key backend.Key, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.resources, key)
	s.unreadable[key] = why
	s.note(key)
}

// Show returns a resource; false if there is none.
func (s *Service) Show(key backend.Key) (owner.Resource, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.resources[key]
	return r, ok
}

// All returns all resources.
func (s *Service) All() map[backend.Key]owner.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clone().resources
}

// FreezeList makes List return the resources that exist now, until ThawList is called.
func (s *Service) FreezeList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clone()
	s.listed = &now
}

// ThawList ends the effect of FreezeList.
func (s *Service) ThawList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = nil
}

// Expire forgets all changes, so that all earlier positions expire.
func (s *Service) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trimmed += len(s.log) + 1
	s.log = nil
	close(s.changed)
	s.changed = make(chan struct{})
}

// Backup is a copy of a service's resources.
type Backup struct{ of state }

// Backup returns a copy of the resources.
func (s *Service) Backup() Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Backup{s.clone()}
}

// Restore replaces the resources by those of a backup, and begins a new history. So all earlier positions expire.
func (s *Service) Restore(b Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = b.of.clone()
	s.history++
	s.log = nil
	s.trimmed = 0
	close(s.changed)
	s.changed = make(chan struct{})
}
