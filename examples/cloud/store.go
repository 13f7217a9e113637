package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	building = "BUILD"
	active   = "ACTIVE"
	deleting = "DELETING"
)

type object struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Owner is chosen by the creator. No two objects of a kind have the same owner.
	Owner string `json:"owner,omitempty"`
	State string `json:"state"`
	// Since is when the object entered its state.
	Since time.Time `json:"since"`
	// Uses are the ids of objects that must exist as long as this object exists.
	Uses       []string       `json:"uses,omitempty"`
	Properties map[string]any `json:"properties"`
}

// These are the errors of requests.
var (
	errNotFound = errors.New("there is no such object")
	errOwned    = errors.New("an object of this kind with this owner is there already")
	errInUse    = errors.New("the object is in use")
	errRefused  = errors.New("refused")
)

// store has the objects in memory, and writes each change as a line to a file.
type store struct {
	work time.Duration

	mu      sync.Mutex // guards all below
	objects map[string]*object
	file    *os.File
}

// line is a change of one object. If Object is nil, the object was removed.
type line struct {
	ID     string  `json:"id"`
	Object *object `json:"object,omitempty"`
}

// open reads the file of a store and replaces it by a new one. The last line of the old file may be incomplete, because
// the process was killed.
func open(path string, work time.Duration) (*store, error) {
	s := &store{work: work, objects: map[string]*object{}}
	raw, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for text := range bytes.Lines(raw) {
		if !bytes.HasSuffix(text, []byte("\n")) {
			break
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if s.objects[l.ID] = l.Object; l.Object == nil {
			delete(s.objects, l.ID)
		}
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil, err
	}
	s.file = fresh
	for _, o := range s.objects {
		if err := s.write(line{ID: o.ID, Object: o}); err != nil {
			return nil, err
		}
	}
	return s, os.Rename(fresh.Name(), path)
}

func (s *store) close() error { return s.file.Close() }

// write appends a change to the file. The change survives if the process is killed afterwards.
func (s *store) write(l line) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = s.file.Write(append(raw, '\n'))
	return err
}

// put stores an object. The caller holds mu.
func (s *store) put(o *object) error {
	if err := s.write(line{ID: o.ID, Object: o}); err != nil {
		return err
	}
	s.objects[o.ID] = o
	return nil
}

// progress completes the creation or removal of objects that have been in their state for at least s.work. The caller
// holds mu.
func (s *store) progress() error {
	for id, o := range s.objects {
		if o.State == active || time.Since(o.Since) < s.work {
			continue
		}
		if o.State == building {
			ready := *o
			ready.State, ready.Since = active, time.Now()
			if err := s.put(&ready); err != nil {
				return err
			}
			continue
		}
		if err := s.write(line{ID: id}); err != nil {
			return err
		}
		delete(s.objects, id)
	}
	return nil
}

// find returns the objects for which a test holds, in the order of their ids. The caller holds mu.
func (s *store) find(accepts func(*object) bool) []*object {
	out := []*object{}
	for _, o := range s.objects {
		if accepts(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *object) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func (s *store) create(o object) (*object, error) {
	if o.Owner != "" && len(s.find(func(other *object) bool { return other.Kind == o.Kind && other.Owner == o.Owner })) > 0 {
		return nil, errOwned
	}
	if err := s.check(&o); err != nil {
		return nil, err
	}
	o.ID, o.State, o.Since = uuid.NewString(), building, time.Now()
	return &o, s.put(&o)
}

func (s *store) replace(kind, id string, uses []string, properties map[string]any) (*object, error) {
	old, err := s.get(kind, id)
	if err != nil {
		return nil, err
	}
	next := *old
	next.Uses, next.Properties = uses, properties
	if err := s.check(&next); err != nil {
		return nil, err
	}
	return &next, s.put(&next)
}

// maxMTU is the maximum size of a packet in the cloud, in bytes.
const maxMTU = 9000

// check returns an error for an object that the cloud does not accept.
func (s *store) check(o *object) error {
	for _, id := range o.Uses {
		if used := s.objects[id]; used == nil || used.State == deleting {
			return fmt.Errorf("%w: there is no object %s to use", errInUse, id)
		}
	}
	if mtu, ok := o.Properties["mtu"].(float64); ok && mtu > maxMTU {
		return fmt.Errorf("%w: the cloud carries packets of at most %d bytes", errRefused, maxMTU)
	}
	return nil
}

func (s *store) get(kind, id string) (*object, error) {
	o := s.objects[id]
	if o == nil || o.Kind != kind {
		return nil, errNotFound
	}
	return o, nil
}

// remove begins to remove an object. It returns an error if another object uses it.
func (s *store) remove(kind, id string) (*object, error) {
	old, err := s.get(kind, id)
	if err != nil || old.State == deleting {
		return old, err
	}
	if by := s.find(func(o *object) bool { return slices.Contains(o.Uses, id) }); len(by) > 0 {
		return nil, fmt.Errorf("%w: by %s %s", errInUse, by[0].Kind, by[0].ID)
	}
	next := *old
	next.State, next.Since = deleting, time.Now()
	return &next, s.put(&next)
}
