package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/internal/loglimit"
	"github.com/sluicegw/sluice/internal/wait"
)

// A controller says of the resources of some kinds when they are ready. Which kinds
// these are is a setting that lies in the store, for all gateways.

const (
	// controllersFormat is the version of the stored record.
	controllersFormat = 1
	// controllersPause is the pause between two looks at the record.
	controllersPause = 2 * time.Second
	// maxControllerWrites bounds how often the record is written against others.
	maxControllerWrites = 16
)

// controllersKey is the internal record of the kinds that controllers own.
func controllersKey() backend.Key { return backend.Key{Kind: "_controllers", Name: "kinds"} }

// controllersRecord is the stored record.
type controllersRecord struct {
	Format int      `json:"format"`
	Kinds  []string `json:"kinds"`
}

// owners are the kinds that controllers own, as this gateway last read them.
type owners struct {
	kinds atomic.Pointer[map[string]bool] // nil until they were read

	mu sync.Mutex // held by who changes them
	// changes counts them: what was read before the last one is not believed after it.
	changes uint64
}

// controlled says whether a controller owns a kind.
func (o *owners) controlled(kind string) bool {
	kinds := o.kinds.Load()
	return kinds != nil && (*kinds)[kind]
}

// now is how often they have changed, for [owners.read].
func (o *owners) now() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changes
}

// read takes what the store had, unless they have changed since the reading began.
func (o *owners) read(kinds []string, since uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changes == since {
		o.set(kinds)
	}
}

// written takes what this gateway has stored.
func (o *owners) written(kinds []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++ // also if it is what was known: a reading may have begun before
	o.set(kinds)
}

// set replaces the kinds, if they differ. The caller holds mu.
func (o *owners) set(kinds []string) {
	if before := o.kinds.Load(); before != nil && len(*before) == len(kinds) && !slices.ContainsFunc(kinds, func(kind string) bool { return !(*before)[kind] }) {
		return
	}
	set := make(map[string]bool, len(kinds))
	for _, kind := range kinds {
		set[kind] = true
	}
	o.changes++
	o.kinds.Store(&set)
}

// Controlled says whether a controller says of the resources of a kind when they are ready.
func (s *Service) Controlled(ctx context.Context, c access.Caller, kind string) (bool, error) {
	k, err := s.kinds.Find(kind)
	if err != nil {
		return false, err
	}
	if err := access.AuthorizeKind(ctx, c, k.Kind, access.ReadKind); err != nil {
		return false, err
	}
	if err := s.knowOwners(ctx); err != nil {
		return false, err
	}
	return s.owners.controlled(k.Name), nil
}

// SetControlled gives the resources of a kind to a controller, or takes them back.
// Other gateways of the store follow within seconds.
func (s *Service) SetControlled(ctx context.Context, c access.Caller, kind string, controlled bool) error {
	k, err := s.kinds.Find(kind)
	if err != nil {
		return err
	}
	if err := access.AuthorizeKind(ctx, c, k.Kind, access.ChangeKind); err != nil {
		return err
	}
	if controlled && k.Conditions == nil {
		return failure.BadInput("controlled", "kind %s has no conditions by which a controller could say that a resource is ready", k.Name)
	}
	for range maxControllerWrites {
		since := s.owners.now()
		record, stored, err := s.readControllers(ctx)
		if err != nil {
			return failure.Of(err, backend.Key{})
		}
		if slices.Contains(record.Kinds, k.Name) == controlled {
			s.owners.read(record.Kinds, since)
			return nil
		}
		if controlled {
			record.Kinds = append(record.Kinds, k.Name)
			slices.Sort(record.Kinds)
		} else {
			record.Kinds = slices.DeleteFunc(record.Kinds, func(o string) bool { return o == k.Name })
		}
		if err = s.writeControllers(ctx, record, stored); err == nil {
			s.owners.written(record.Kinds)
			return nil
		}
		if !errors.Is(err, backend.ErrConflict) && !errors.Is(err, backend.ErrExists) && !errors.Is(err, backend.ErrNotFound) {
			return failure.Of(err, backend.Key{})
		}
	}
	return failure.Of(backend.ErrConflict, backend.Key{Kind: k.Name})
}

func (s *Service) writeControllers(ctx context.Context, record controllersRecord, stored *backend.Resource) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("controllers: %w", err)
	}
	put := backend.Action{Key: controllersKey(), Op: backend.OpPut, If: backend.Condition{Presence: backend.Absent}, Put: backend.Put{UID: s.cfg.NewID(), Body: backend.EncodeBody(raw)}}
	if stored != nil {
		put.If = backend.Condition{Presence: backend.Present, Revision: stored.Revision}
	}
	_, err = s.cfg.Store.Apply(ctx, backend.Batch{RequestID: s.cfg.NewID(), Deadline: s.cfg.Clock().Add(s.cfg.WriteTimeout), Actions: []backend.Action{put}})
	return err
}

// readControllers reads the record, and what the store has of it; nil for nothing.
func (s *Service) readControllers(ctx context.Context) (record controllersRecord, stored *backend.Resource, err error) {
	record.Format = controllersFormat
	got, err := s.cfg.Store.Get(ctx, controllersKey())
	if err != nil || got[0] == nil {
		return record, nil, err
	}
	raw, err := backend.DecodeBody(got[0].Body)
	if err != nil {
		return record, nil, err
	}
	if err := json.Unmarshal(raw, &record); err != nil || record.Format != controllersFormat {
		return record, nil, fmt.Errorf("record of controllers in format %d, %d wanted: %w", record.Format, controllersFormat, backend.ErrUnreadable)
	}
	return record, got[0], nil
}

// knowOwners reads the record, unless it was read before.
func (s *Service) knowOwners(ctx context.Context) error {
	if s.owners.kinds.Load() != nil {
		return nil
	}
	since := s.owners.now()
	record, _, err := s.readControllers(ctx)
	if err != nil {
		return err
	}
	s.owners.read(record.Kinds, since)
	return nil
}

// followOwners reads the record again and again until ctx ends.
func (s *Service) followOwners(ctx context.Context) error {
	logger := loglimit.Once(s.cfg.Logger)
	for {
		since := s.owners.now()
		record, _, err := s.readControllers(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, backend.ErrClosed):
			return nil
		case err != nil:
			logger.Warn("the kinds that controllers own could not be read", zap.Error(err))
		default:
			s.owners.read(record.Kinds, since)
		}
		if !wait.For(ctx, controllersPause) {
			return nil
		}
	}
}
