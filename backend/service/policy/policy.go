// Package policy keeps the roles and bindings of a gateway in memory, for all catalogues that the gateway serves.
//
// A gateway has one [Source], just as it has one hub. All generations of the catalogue use it, so a stream that began
// under an older catalogue sees the same roles and bindings. What a role means depends on the kinds of a catalogue, so
// each generation builds its own [access.Policy] from the source.
package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Config configures a [Source]. All fields but Logger are required.
type Config struct {
	Store backend.Store
	// Hub delivers the changes of Store. The caller runs it.
	Hub *hub.Hub
	// Kinds are the kinds of any catalogue. The two kinds that give rights are the same in every catalogue.
	Kinds []descriptor.Kind
	// Logger receives messages of the index that holds the roles and bindings. The default logs nothing.
	Logger *zap.Logger
}

// Validate returns every problem of the configuration, joined.
func (c Config) Validate() error {
	var errs []error
	if c.Store == nil {
		errs = append(errs, errors.New("config: Store is missing"))
	}
	if c.Hub == nil {
		errs = append(errs, errors.New("config: Hub is missing"))
	}
	if len(givingRights(c.Kinds)) != len(kindNames()) {
		errs = append(errs, fmt.Errorf("config: Kinds wants %s and %s", access.RoleKind, access.BindingKind))
	}
	return errors.Join(errs...)
}

func kindNames() []string { return []string{access.BindingKind, access.RoleKind} }

func givingRights(kinds []descriptor.Kind) (out []descriptor.Kind) {
	for i := range kinds {
		if slices.Contains(kindNames(), kinds[i].Name) {
			out = append(out, kinds[i])
		}
	}
	return out
}

// Source provides the roles and bindings of the store. All methods are safe for concurrent use.
type Source struct {
	index *index.Index
	era   atomic.Pointer[era]
}

// era is a context that is canceled when the roles or bindings change.
type era struct {
	context.Context
	end context.CancelFunc
}

func newEra() *era {
	e := &era{}
	e.Context, e.end = context.WithCancel(context.Background())
	return e
}

// New returns a source. It starts nothing. Until Run has read the roles and bindings, calls that need them wait.
func New(cfg Config) (*Source, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	kinds, err := kind.Compile(givingRights(cfg.Kinds))
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	var definitions []index.Definition
	for _, k := range kinds.All() {
		d := k.Definition()
		d.Pinned = true
		definitions = append(definitions, d)
	}
	s := &Source{}
	if s.index, err = index.New(index.Config{
		Store:  cfg.Store,
		Hub:    cfg.Hub,
		Kinds:  definitions,
		Logger: cfg.Logger,
	}); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	s.era.Store(newEra())
	return s, nil
}

// Run follows the changes of the hub until ctx ends. It then returns nil.
func (s *Source) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.index.Run(ctx) })
	g.Go(func() error {
		s.runEras(ctx)
		return nil
	})
	return g.Wait()
}

// runEras ends the current era after each change and begins another.
func (s *Source) runEras(ctx context.Context) {
	for {
		changed := s.index.PinnedChanged()
		s.era.Swap(newEra()).end() // also for what has changed before
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Filled waits until the roles and bindings were read.
func (s *Source) Filled(ctx context.Context) error { return s.index.Filled(ctx) }

// Era returns a context that is canceled soon after the roles or bindings have changed.
func (s *Source) Era() context.Context { return s.era.Load().Context }

// Version returns a number that grows with each change. It is 0 until the roles and bindings were read. Version does
// not wait.
func (s *Source) Version() uint64 {
	state, _, ok := s.Current()
	if !ok {
		return 0
	}
	return state.Version()
}

// Current returns the roles and bindings in memory, and the log position of this state. ok is false until they were
// read. Current does not call the store, which may already have a newer state. No watch of the hub has delivered a
// change after the position.
func (s *Source) Current() (state RolesAndBindings, at backend.Position, ok bool) {
	view := s.index.Current()
	state, ok = stateIn(view)
	return state, view.Position(), ok
}

// After returns the roles and bindings at a log position or a later one. The zero position means that the result has
// everything that the store has acknowledged. After returns UNAVAILABLE if this takes too long.
func (s *Source) After(ctx context.Context, at backend.Position) (RolesAndBindings, error) {
	view := s.index.Current()
	if state, ok := stateIn(view); ok && !at.IsZero() && view.Shows(at) {
		return state, nil
	}
	view = index.View{}
	for _, name := range kindNames() {
		if _, ok := view.Kind(name); ok {
			continue
		}
		next, _, err := s.index.Await(ctx, view, name)
		var filling *index.FillingError
		switch {
		case errors.As(err, &filling):
			return RolesAndBindings{}, &failure.Error{
				Code:       failure.CodeUnavailable,
				Kind:       name,
				Retryable:  true,
				RetryAfter: int(filling.RetryAfter.Seconds()),
				Message:    filling.Error() + "; try again",
			}
		case err != nil:
			return RolesAndBindings{}, failure.Of(err, backend.Key{Kind: name})
		}
		view = next
	}
	state, ok := stateIn(view)
	if !ok {
		return RolesAndBindings{}, &failure.Error{
			Code:       failure.CodeUnavailable,
			Retryable:  true,
			RetryAfter: 1,
			Message:    "the gateway does not know yet who may do what; try again",
		}
	}
	return state, nil
}

// RolesAndBindings are all roles and bindings in one state of the store.
type RolesAndBindings struct{ roles, bindings *index.Kind }

func stateIn(view index.View) (out RolesAndBindings, ok bool) {
	var hasRoles, hasBindings bool
	out.roles, hasRoles = view.Kind(access.RoleKind)
	out.bindings, hasBindings = view.Kind(access.BindingKind)
	return out, hasRoles && hasBindings
}

// Version returns a number that is greater for later states, and equal only for equal states.
func (s RolesAndBindings) Version() uint64 { return max(s.roles.Version(), s.bindings.Version()) }

// Roles returns the bodies (JSON) of the roles by name. Roles that cannot be read are left out.
func (s RolesAndBindings) Roles() map[string][]byte { return bodiesOf(s.roles) }

// Bindings returns the bodies (JSON) of the bindings by name. Bindings that cannot be read are left out.
func (s RolesAndBindings) Bindings() map[string][]byte { return bodiesOf(s.bindings) }

func bodiesOf(k *index.Kind) map[string][]byte {
	out := map[string][]byte{}
	k.Scan(index.Run{}, false, func(_ string, e *index.Entry) bool {
		if body, err := backend.DecodeBody(e.Resource.Body); err == nil && e.Err == nil {
			out[e.Resource.Name] = body
		}
		return true
	})
	return out
}
