// Package ownertest is a resource service in memory, for tests of the gateway and of protocols. It keeps all promises
// of package owner. With [Hooks], a test can make it misbehave or answer late.
package ownertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// Call describes a call of the service to [Hooks].
type Call struct {
	// Method is the name of the method, such as "Write".
	Method string
	// Keys are the keys of Get, Write or Delete.
	Keys []backend.Key
	// DryRun reports whether a Write or Delete is a dry run.
	DryRun bool
}

// Hooks change the behaviour of the service. They are called without a lock, by several goroutines at the same time. A
// nil hook changes nothing.
type Hooks struct {
	// Before is called before a call is executed, and may wait. If it returns an error, the call is not executed.
	Before func(ctx context.Context, c Call) error
	// After is called after a call was executed. If it returns an error, the caller gets this error instead of the
	// answer.
	After func(ctx context.Context, c Call) error
	// Write decides on a write. If it returns nil, the service decides.
	Write func(w owner.Write) *owner.Answer
	// Delete decides on a delete. If it returns nil, the service decides. If it returns the outcome [owner.Waits], the
	// resource is marked for deletion and stays until [Service.Remove].
	Delete func(d owner.Delete) *owner.Answer
	// Admit changes a resource before it is stored, for example to set defaults or a status.
	Admit func(r *owner.Resource)
	// Changes replaces the answer to Changes. It may repeat, reorder or leave out keys.
	Changes func(c owner.Changes) owner.Changes
}

// Service is a resource service in memory. It is safe for concurrent use.
type Service struct {
	name  string
	kinds []owner.Kind

	mu    sync.Mutex // guards all below
	hooks Hooks
	state
	// listed are the resources that List returns after FreezeList; nil otherwise.
	listed *state
	// log has the keys of changes. trimmed is the position before log[0].
	log     []backend.Key
	trimmed int
	// history changes with each [Service.Restore].
	history int
	// changed is closed at the next change.
	changed chan struct{}
	uids    int
}

// state has the resources of a service.
type state struct {
	resources  map[backend.Key]owner.Resource
	unreadable map[backend.Key]string
}

func (s state) clone() state {
	return state{maps.Clone(s.resources), maps.Clone(s.unreadable)}
}

var _ owner.Service = (*Service)(nil)

// Full returns a kind with all capabilities.
func Full(name string) owner.Kind {
	return owner.Kind{Name: name, Changes: true, Writes: true, Conditional: true, DryRun: true}
}

// New returns a service without resources.
func New(name string, kinds ...owner.Kind) *Service {
	return &Service{
		name: name, kinds: kinds, changed: make(chan struct{}),
		state: state{map[backend.Key]owner.Resource{}, map[backend.Key]string{}},
	}
}

// SetHooks replaces the hooks.
func (s *Service) SetHooks(h Hooks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = h
}

// SetKinds replaces the kinds in the description.
func (s *Service) SetKinds(kinds ...owner.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = kinds
}

// begin calls the hook Before and returns the hooks.
func (s *Service) begin(ctx context.Context, c Call) (Hooks, error) {
	s.mu.Lock()
	h := s.hooks
	s.mu.Unlock()
	if h.Before != nil {
		if err := h.Before(ctx, c); err != nil {
			return h, err
		}
	}
	return h, ctx.Err()
}

func (h Hooks) end(ctx context.Context, c Call) error {
	if h.After == nil {
		return nil
	}
	return h.After(ctx, c)
}

// kind returns the kind with a name. The caller holds mu.
func (s *Service) kind(name string) (owner.Kind, error) {
	for _, k := range s.kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return owner.Kind{}, fmt.Errorf("the service %s has no kind %q", s.name, name)
}

// Describe implements [owner.Service].
func (s *Service) Describe(ctx context.Context) (owner.Description, error) {
	c := Call{Method: "Describe"}
	h, err := s.begin(ctx, c)
	if err != nil {
		return owner.Description{}, err
	}
	s.mu.Lock()
	d := owner.Description{Service: s.name, Kinds: slices.Clone(s.kinds)}
	s.mu.Unlock()
	return d, h.end(ctx, c)
}

// List implements [owner.Service]. The resources are ordered by key. A token is the last key of a page.
func (s *Service) List(ctx context.Context, kind, token string, size int) (owner.Page, error) {
	c := Call{Method: "List"}
	h, err := s.begin(ctx, c)
	if err != nil {
		return owner.Page{}, err
	}
	page, err := s.list(kind, token, size)
	if err != nil {
		return owner.Page{}, err
	}
	return page, h.end(ctx, c)
}

func (s *Service) list(kind, token string, size int) (owner.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.kind(kind); err != nil {
		return owner.Page{}, err
	}
	from := s.state
	if s.listed != nil {
		from = *s.listed
	}
	var keys []backend.Key
	for _, some := range [][]backend.Key{
		slices.Collect(maps.Keys(from.resources)), slices.Collect(maps.Keys(from.unreadable)),
	} {
		for _, key := range some {
			if key.Kind == kind && placeOf(key) > token {
				keys = append(keys, key)
			}
		}
	}
	slices.SortFunc(keys, func(a, b backend.Key) int { return strings.Compare(placeOf(a), placeOf(b)) })
	var page owner.Page
	if size > 0 && len(keys) > size {
		keys = keys[:size]
		page.Next = placeOf(keys[size-1])
	}
	for _, key := range keys {
		if why, bad := from.unreadable[key]; bad {
			page.Unreadable = append(page.Unreadable, owner.Unreadable{Key: key, Message: why})
			continue
		}
		page.Resources = append(page.Resources, from.resources[key])
	}
	return page, nil
}

// placeOf returns the page token that stands for a key. It is never empty.
func placeOf(key backend.Key) string { return key.Namespace + "/" + key.Name }

// Get implements [owner.Service].
func (s *Service) Get(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
	if len(keys) > owner.MaxKeys {
		return nil, fmt.Errorf("%d keys, at most %d", len(keys), owner.MaxKeys)
	}
	c := Call{Method: "Get", Keys: keys}
	h, err := s.begin(ctx, c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	out := make([]owner.Got, len(keys))
	for i, key := range keys {
		if r, ok := s.resources[key]; ok {
			out[i].Resource = &r
		}
		if why, bad := s.unreadable[key]; bad {
			out[i] = owner.Got{Unreadable: why}
		}
	}
	s.mu.Unlock()
	return out, h.end(ctx, c)
}

// Changes implements [owner.Service].
func (s *Service) Changes(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
	c := Call{Method: "Changes"}
	h, err := s.begin(ctx, c)
	if err != nil {
		return owner.Changes{}, err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for timeout := false; ; {
		out, changed, err := s.changesAfter(position)
		if err != nil {
			return owner.Changes{}, err
		}
		if timeout || position == "" || out.Expired || len(out.Keys) > 0 {
			if h.Changes != nil {
				out = h.Changes(out)
			}
			return out, h.end(ctx, c)
		}
		select {
		case <-changed:
		case <-timer.C:
			timeout = true
		case <-ctx.Done():
			return owner.Changes{}, ctx.Err()
		}
	}
}

// changesAfter returns the changes after a position, and a channel that is closed at the next
// change.
func (s *Service) changesAfter(position string) (owner.Changes, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.kinds, func(k owner.Kind) bool { return k.Changes }) {
		return owner.Changes{}, nil, owner.ErrUnimplemented
	}
	out := owner.Changes{Position: fmt.Sprintf("%d.%d", s.history, s.trimmed+len(s.log))}
	if position == "" {
		return out, s.changed, nil
	}
	history, place, _ := strings.Cut(position, ".")
	n, err := strconv.Atoi(place)
	if err != nil || history != strconv.Itoa(s.history) || n < s.trimmed || n > s.trimmed+len(s.log) {
		out.Expired = true
		return out, s.changed, nil
	}
	out.Keys = slices.Clone(s.log[n-s.trimmed:])
	return out, s.changed, nil
}

// Write implements [owner.Service].
func (s *Service) Write(ctx context.Context, w owner.Write) (owner.Answer, error) {
	c := Call{Method: "Write", Keys: []backend.Key{w.Resource.Key}, DryRun: w.DryRun}
	h, err := s.begin(ctx, c)
	if err != nil {
		return owner.Answer{}, err
	}
	if h.Write != nil {
		if a := h.Write(w); a != nil {
			return *a, h.end(ctx, c)
		}
	}
	a, err := s.write(h, w)
	if err != nil {
		return owner.Answer{}, err
	}
	return a, h.end(ctx, c)
}

func (s *Service) write(h Hooks, w owner.Write) (owner.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kind(w.Resource.Key.Kind)
	switch {
	case err != nil:
		return owner.Answer{}, err
	case !k.Writes || w.DryRun && !k.DryRun:
		return owner.Answer{}, owner.ErrUnimplemented
	}
	was, there := s.resources[w.Resource.Key]
	switch {
	case w.IfAbsent && there:
		return owner.Answer{Outcome: owner.Exists, Resource: &was}, nil
	case (w.IfTag != "" || w.IfUID != "") && !there:
		return owner.Answer{Outcome: owner.Absent}, nil
	case k.Conditional && w.IfTag != "" && w.IfTag != was.Tag, w.IfUID != "" && w.IfUID != was.UID:
		return owner.Answer{Outcome: owner.Conflict, Resource: &was}, nil
	}
	next := w.Resource
	next.UID = was.UID
	next.CreatedAt = was.CreatedAt
	next.DeletionRequestedAt = was.DeletionRequestedAt
	next.Status = was.Status
	if !there {
		s.uids++
		next.UID = fmt.Sprintf("%s-%d", s.name, s.uids)
		next.CreatedAt = time.Now().UTC().Truncate(time.Millisecond)
	}
	if h.Admit != nil {
		h.Admit(&next)
	}
	next.Tag = tagOf(k, next)
	if there && next.Tag != "" && next.Tag == was.Tag {
		next.WriteID = was.WriteID // this write made no version
	}
	if w.DryRun {
		next.Tag = ""
		return owner.Answer{Outcome: owner.Done, Resource: &next}, nil
	}
	s.put(next)
	return owner.Answer{Outcome: owner.Done, Resource: &next}, nil
}

// tagOf returns the tag of a resource. Equal resources have equal tags.
func tagOf(k owner.Kind, r owner.Resource) string {
	if !k.Conditional {
		return ""
	}
	raw, _ := json.Marshal([]any{ // maps are written in the order of their keys
		r.Labels, r.Annotations, r.Description, string(compact(r.Spec)), string(compact(r.Status)), r.DeletionRequestedAt,
	})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6])
}

func compact(raw []byte) []byte {
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return raw
	}
	return out.Bytes()
}

// put stores a resource and logs the change. The caller holds mu.
func (s *Service) put(r owner.Resource) {
	s.resources[r.Key] = r
	delete(s.unreadable, r.Key)
	s.note(r.Key)
}

// note adds a change to the log. The caller holds mu.
func (s *Service) note(key backend.Key) {
	if k, err := s.kind(key.Kind); err != nil || !k.Changes {
		return
	}
	s.log = append(s.log, key)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Delete implements [owner.Service].
func (s *Service) Delete(ctx context.Context, d owner.Delete) (owner.Answer, error) {
	c := Call{Method: "Delete", Keys: []backend.Key{d.Key}, DryRun: d.DryRun}
	h, err := s.begin(ctx, c)
	if err != nil {
		return owner.Answer{}, err
	}
	waits := false
	if h.Delete != nil {
		if a := h.Delete(d); a != nil {
			if a.Outcome != owner.Waits {
				return *a, h.end(ctx, c)
			}
			waits = true
		}
	}
	a, err := s.delete(d, waits)
	if err != nil {
		return owner.Answer{}, err
	}
	return a, h.end(ctx, c)
}

func (s *Service) delete(d owner.Delete, waits bool) (owner.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.kind(d.Key.Kind)
	switch {
	case err != nil:
		return owner.Answer{}, err
	case !k.Writes || d.DryRun && !k.DryRun:
		return owner.Answer{}, owner.ErrUnimplemented
	}
	was, there := s.resources[d.Key]
	switch {
	case !there:
		return owner.Answer{Outcome: owner.Absent}, nil
	case k.Conditional && d.IfTag != "" && d.IfTag != was.Tag, d.IfUID != "" && d.IfUID != was.UID:
		return owner.Answer{Outcome: owner.Conflict, Resource: &was}, nil
	case d.DryRun && waits:
		return owner.Answer{Outcome: owner.Waits, Resource: &was}, nil
	case d.DryRun:
		return owner.Answer{Outcome: owner.Done, Resource: &was}, nil
	case !waits:
		delete(s.resources, d.Key)
		s.note(d.Key)
		return owner.Answer{Outcome: owner.Done, Resource: &was}, nil
	}
	if was.DeletionRequestedAt.IsZero() {
		was.DeletionRequestedAt = time.Now().UTC().Truncate(time.Millisecond)
		was.Tag = tagOf(k, was)
		s.put(was)
	}
	return owner.Answer{Outcome: owner.Waits, Resource: &was}, nil
}
