package service

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/page"
	"github.com/sluicegw/sluice/internal/wait"
)

// Revealed has the write-only values of a resource of a sensitive kind. All values are of the same revision.
type Revealed struct {
	Resource *backend.Resource
	Values   []kind.Value
}

// Reveal returns the write-only values of a resource of a sensitive kind; nil if there is no such resource. No other
// method returns such values. Reveal always reads them from the store, so they include all acknowledged writes.
func (s *Service) Reveal(ctx context.Context, id kind.Identity) (*Revealed, error) {
	if err := s.sensitive(id.Kind); err != nil {
		return nil, err
	}
	k, key, err := s.kinds.Resolve(id)
	if err != nil {
		return nil, err
	}
	rights, err := s.Reader.Rights(ctx) // as fresh as for any read
	if err != nil {
		return nil, err
	}
	if err := rights.Authorize(k.Kind, descriptor.VerbReveal, key); err != nil {
		return nil, err
	}
	if err := budget.From(ctx).Spend(budget.Rows, 1); err != nil {
		return nil, err
	}
	select {
	case s.reveals <- struct{}{}:
		defer func() { <-s.reveals }()
	case <-ctx.Done():
		return nil, failure.Of(ctx.Err(), key)
	}
	current, err := s.loadWhole(ctx, k, key)
	if err != nil || current == nil {
		return nil, err
	}
	if err := holdRevealed(ctx, current); err != nil {
		return nil, err
	}
	st, err := current.state(k)
	if err != nil {
		if current.unread == nil { // noted when it was found
			s.unreadable.Note(current.Resource, err)
		}
		return nil, failure.Of(err, key)
	}
	if err := s.cfg.Revealing(ctx, key); err != nil {
		return nil, failure.Unaudited(err).At(key)
	}
	return &Revealed{Resource: current.Resource, Values: k.Spec.Revealed(failure.At("spec"), st.Spec)}, nil
}

// maxReveals is how many resources are revealed at a time. It bounds memory: one operation can ask for many resources,
// and their sizes are not known before they are read.
const maxReveals = 8

// revealedCopies is roughly how many copies of a value are in memory before it is sent: the stored, the read, the
// decoded and the answered value.
const revealedCopies = 4

// holdRevealed charges the revealed values to the memory budget of the operation. It may wait until memory is free.
func holdRevealed(ctx context.Context, current *storedResource) error {
	bytes := len(current.Body)
	if current.sensitive != nil {
		bytes += revealedCopies * len(current.sensitive.Body)
	}
	return page.Failure(budget.From(ctx).Hold(ctx, bytes), current.Key)
}

// sensitive returns an error that lists the sensitive kinds, unless the named kind is one of them.
func (s *Service) sensitive(name string) error {
	k, err := s.kinds.Find(name)
	if err == nil && k.Sensitive {
		return nil
	}
	which := cmp.Or(strings.Join(s.sensitiveKinds(), ", "), "there are none")
	e := &failure.Error{Code: failure.CodeBadUserInput, Path: "kind", Kind: failure.Shorten(name)}
	e.Message = fmt.Sprintf("kind %q is not known; sensitive kinds: %s", e.Kind, which)
	if err == nil {
		e.Kind = k.Name
		e.Message = fmt.Sprintf("kind %s is not sensitive, so it has no values to reveal; sensitive kinds: %s", k.Name, which)
	}
	return e
}

func (s *Service) sensitiveKinds() (out []string) {
	for _, k := range s.kinds.All() {
		if k.Sensitive {
			out = append(out, k.Name)
		}
	}
	return out
}

// loadWhole loads a resource and its sensitive values at one revision. It reads the resource before and after the
// values and compares the revisions, because each change of the values also changes the resource.
func (s *Service) loadWhole(ctx context.Context, k *kind.Kind, key backend.Key) (*storedResource, error) {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.RetryTimeout)
		defer cancel()
	}
	backoff := wait.Backoff{Least: minRacePause, Most: maxRacePause}
	for {
		current, err := s.loader.load(ctx, k, key)
		if err != nil || current == nil {
			return nil, err
		}
		got, err := s.cfg.Store.Get(ctx, key)
		if err != nil {
			return nil, failure.Of(err, key)
		}
		if now := got[0]; now != nil && now.Revision == current.Revision && now.UID == current.UID {
			return current, nil
		}
		if !backoff.Wait(ctx) {
			return nil, failure.Of(backend.ErrConflict, key)
		}
	}
}
