// Package policy keeps the roles and bindings of a gateway in memory, for every catalogue that the
// gateway serves.
//
// A gateway has one [Source], as it has one hub. All generations of the catalogue use it, so a
// stream that began on an older one follows the same roles and bindings. The meaning of a role
// depends on the kinds of a catalogue, so each generation makes its own [access.Policy] from the
// source.
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

// Config of a source. All but Logger is required.
type Config struct {
	Store backend.Store
	// Hub over the store, which the caller runs.
	Hub *hub.Hub
	// Kinds of any catalogue. Every catalogue has the kinds that give rights, in the same form.
	Kinds []descriptor.Kind
	// Logger receives the changes of state of the kinds. Default: none.
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

// kindNames returns the names of the kinds that give rights.
func kindNames() []string { return []string{access.BindingKind, access.RoleKind} }

// givingRights returns the kinds that give rights.
func givingRights(kinds []descriptor.Kind) (out []descriptor.Kind) {
	for i := range kinds {
		if slices.Contains(kindNames(), kinds[i].Name) {
			out = append(out, kinds[i])
		}
	}
	return out
}

// Source has the roles and bindings of the store. All methods are safe for concurrent use.
type Source struct {
	index *index.Index
	era   atomic.Pointer[era]
}

// era is a time in which the roles and bindings do not change.
type era struct {
	context.Context
	end context.CancelFunc
}

func newEra() *era {
	e := &era{}
	e.Context, e.end = context.WithCancel(context.Background())
	return e
}

// New returns a source and starts nothing. Until Run has read the roles and bindings, callers that
// ask for them wait.
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

// Run follows the hub until ctx ends, and returns nil.
func (s *Source) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.index.Run(ctx) })
	g.Go(func() error {
		s.runEras(ctx)
		return nil
	})
	return g.Wait()
}

// runEras ends the era at each change.
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

// Filled returns once the roles and bindings are known.
func (s *Source) Filled(ctx context.Context) error { return s.index.Filled(ctx) }

// Era returns a context that ends soon after the roles or bindings have changed.
func (s *Source) Era() context.Context { return s.era.Load().Context }

// Version returns a number that grows with each change, 0 while the roles and bindings are not
// known. It does not wait.
func (s *Source) Version() uint64 {
	state, _, ok := s.Current()
	if !ok {
		return 0
	}
	return state.Version()
}

// Current returns the roles and bindings as known now, and the position of the log that they
// correspond to. ok is false while they are not known. It does not ask the store, which may have
// newer ones. No watch of the hub has delivered a change after the position.
func (s *Source) Current() (state RolesAndBindings, at backend.Position, ok bool) {
	view := s.index.Current()
	state, ok = stateIn(view)
	return state, view.Position(), ok
}

// After returns the roles and bindings of a position or later; the zero position means everything
// that the store has acknowledged. It returns UNAVAILABLE if they do not become known.
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

// RolesAndBindings are the roles and bindings of one state of the store.
type RolesAndBindings struct{ roles, bindings *index.Kind }

func stateIn(view index.View) (out RolesAndBindings, ok bool) {
	var hasRoles, hasBindings bool
	out.roles, hasRoles = view.Kind(access.RoleKind)
	out.bindings, hasBindings = view.Kind(access.BindingKind)
	return out, hasRoles && hasBindings
}

// Version returns a number that is greater for newer states, and the same for equal ones.
func (s RolesAndBindings) Version() uint64 { return max(s.roles.Version(), s.bindings.Version()) }

// Roles returns the JSON of the bodies of the roles that can be read, by name.
func (s RolesAndBindings) Roles() map[string][]byte { return bodiesOf(s.roles) }

// Bindings returns the JSON of the bodies of the bindings that can be read, by name.
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
