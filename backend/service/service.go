// Package service is the resource service, which gives every kind its verbs. It works on the JSON of resources over any
// [backend.Store], guided by the descriptors of their kinds. This package has the verbs that write ([Writer]). Package
// query has the verbs that read, and package change has the streams of changes. Package kind compiles and validates
// kinds.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/policy"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/reconcile"
	"github.com/sluicegw/sluice/internal/span"
)

// Config configures a [Service].
type Config struct {
	// Kinds is the catalogue. Required.
	Kinds []descriptor.Kind
	// Store holds the resources of every kind. Required.
	Store backend.Store
	// Hub distributes the changes of Store. If it is set, the caller runs it. If it is nil, the service makes a hub,
	// and Service.Run runs it.
	Hub *hub.Hub
	// Keys encrypts the values of sensitive kinds. If it is nil, the values are stored unencrypted.
	Keys *keyring.Keyring
	// IndexMemory is the maximum number of bytes of resources kept in memory for reads. If it is negative, none are
	// kept. The default is 256 MiB.
	IndexMemory int64
	// Access configures access control. By default every caller may do everything.
	Access access.Config
	// Policy provides the roles and bindings. If it is set, the caller runs it. If it is nil and access control is
	// enabled, the service makes one, and Service.Run runs it.
	Policy *policy.Source
	// Logger receives errors that are not shown to clients. The default logs nothing.
	Logger *zap.Logger
	// NewID returns a new uid. One of them is used as the prefix of request ids. The default returns random UUIDs.
	NewID func() string
	// WriteTimeout is the time within which the store must begin a batch. The default is 5 s.
	WriteTimeout time.Duration
	// OutcomeTimeout bounds the search for the outcome of a write whose answer was lost. The default is 30 s.
	OutcomeTimeout time.Duration
	// BookmarkInterval is the time without a change after which a stream of changes sends its cursor. The default is 30
	// s.
	BookmarkInterval time.Duration
	// RetryTimeout bounds the time for which a write is repeated after lost races, if the request has no deadline. The
	// default is 30 s.
	RetryTimeout time.Duration
	// ReadOnly makes the service refuse all writes except dry runs. It also turns off the re-evaluation of waiting
	// resources, the re-encryption of values, and the mirroring of resource services.
	ReadOnly bool
	// Controlled is called after the caller of ctx has handed a kind to a controller or taken it back. It may be nil.
	Controlled func(ctx context.Context, kind string, controlled bool)
	// Revealing is called before sensitive values are shown to the caller of ctx. If it returns an error, they are not
	// shown. It may be nil.
	Revealing func(ctx context.Context, key backend.Key) error
	// Owners maps the names in descriptor.Kind.Service to the resource services of other teams. If the service of a
	// kind is missing, resources of the kind can be read from the store but not written.
	Owners map[string]owner.Service
	// CompareIntervals maps the name of a resource service to the pause between two comparisons of the service with its
	// mirror. The default is [mirror.DefaultCompareInterval], or [mirror.UnfollowedInterval] for kinds whose changes
	// the service does not announce.
	CompareIntervals map[string]time.Duration
	// RetainEntries is the number of changes that the store keeps in its log. If mirroring a kind writes more than
	// half as many changes, a warning is logged. With 0, none is logged.
	RetainEntries int
	// Observe receives measurements. Its functions may be nil.
	Observe Observers
	// Tracer traces the later effects of a traced write, such as the end of a deletion. If it is nil, they are not
	// traced.
	Tracer *span.Tracer
	// Unreadable counts the stored resources whose bodies cannot be decoded. If it is nil, the service makes a counter.
	Unreadable *kind.UnreadableCounter
}

// Observers receive the measurements of a service. Each may be nil. Durations are in seconds.
type Observers struct {
	// LockWait receives how long a write waited for other writes of the same resource. It is not called for a write
	// that did not wait.
	LockWait backend.Observer
	// Raced is called when a write is repeated because another gateway has changed the resource or one of its targets.
	Raced func()
	// Reconcile receives how long it took to handle the effects of changes, such as releasing waiting resources and
	// finishing deletions.
	Reconcile backend.Observer
	// Reevaluated is called with the number of resources that were re-evaluated.
	Reevaluated func(resources int)
}

func (o *Observers) setDefaults() {
	o.LockWait = backend.ObserverOr(o.LockWait)
	o.Reconcile = backend.ObserverOr(o.Reconcile)
	if o.Raced == nil {
		o.Raced = func() {}
	}
	if o.Reevaluated == nil {
		o.Reevaluated = func(int) {}
	}
}

// Validate returns every problem of the configuration, joined.
func (c Config) Validate() error {
	var errs []error
	if len(c.Kinds) == 0 {
		errs = append(errs, errors.New("config: Kinds wants at least one"))
	}
	if c.Store == nil {
		errs = append(errs, errors.New("config: Store is missing"))
	}
	if c.Access.Enabled && !slices.ContainsFunc(c.Kinds, func(k descriptor.Kind) bool {
		return k.Name == access.BindingKind
	}) {
		errs = append(errs, fmt.Errorf("config: Access wants the kinds %s and %s", access.RoleKind, access.BindingKind))
	}
	if min(c.WriteTimeout, c.OutcomeTimeout, c.RetryTimeout, c.BookmarkInterval) < 0 {
		errs = append(errs, errors.New("config: WriteTimeout, OutcomeTimeout, RetryTimeout and BookmarkInterval cannot "+
			"be negative"))
	}
	for name, interval := range c.CompareIntervals {
		if interval < 0 {
			errs = append(errs, fmt.Errorf("config: CompareIntervals of %s cannot be negative", name))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 5*time.Second)
	c.OutcomeTimeout = cmp.Or(c.OutcomeTimeout, 30*time.Second)
	c.BookmarkInterval = cmp.Or(c.BookmarkInterval, 30*time.Second)
	c.RetryTimeout = cmp.Or(c.RetryTimeout, 30*time.Second)
	if c.Controlled == nil {
		c.Controlled = func(context.Context, string, bool) {}
	}
	if c.Revealing == nil {
		c.Revealing = func(context.Context, backend.Key) error { return nil }
	}
	c.Observe.setDefaults()
	if c.Unreadable == nil {
		c.Unreadable = kind.NewUnreadableCounter(func(string) {})
	}
}

// ReadOnly reports whether the service refuses writes: see [Config.ReadOnly].
func (s *Service) ReadOnly() bool { return s.cfg.ReadOnly }

// Service is the resource service of a catalogue. Most callers use one of its parts: Reader reads,
// Feed follows changes, and Writer writes. The methods of Service itself concern the catalogue as a
// whole.
type Service struct {
	Reader *query.Reader
	Feed   *change.Feed
	Writer *Writer

	cfg        Config
	kinds      kind.Catalogue
	clock      func() time.Time // of the store
	hub        *hub.Hub
	ownHub     bool // Run runs the hub
	ownPolicy  bool // Run runs the source of the policy
	unreadable *kind.Unreadable
	loader     *loader
	reconciler *reconcile.Reconciler
	index      *index.Index  // nil if nothing is kept in memory
	reveals    chan struct{} // has an element for each resource that is being revealed
}

// New compiles the rules and patterns of the catalogue and returns a service. It starts nothing: see [Service.Run].
func New(cfg Config) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	cfg.setDefaults()
	s := &Service{
		cfg:        cfg,
		clock:      backend.ClockOf(cfg.Store),
		unreadable: kind.NewUnreadable(cfg.Store, cfg.Logger, cfg.Unreadable),
		reveals:    make(chan struct{}, maxReveals),
	}
	for _, prepare := range []func() error{s.compile, s.openHub, s.openIndex, s.openPolicy} {
		if err := prepare(); err != nil {
			return nil, fmt.Errorf("service: %w", err)
		}
	}
	s.loader = &loader{store: cfg.Store, keys: cfg.Keys, index: s.index, unreadable: s.unreadable}
	s.Reader = query.New(query.Config{
		Store:      cfg.Store,
		Kinds:      s.kinds,
		Unreadable: s.unreadable,
		Index:      s.index,
		Access:     cfg.Access,
		Policy:     s.cfg.Policy,
		Unmirrored: func(k *kind.Kind) map[backend.Key]string { return s.Writer.mirrors.Unreadable(k) },
	})
	s.Feed = change.New(change.Config{
		Store:            cfg.Store,
		Hub:              s.hub,
		Kinds:            s.kinds,
		Unreadable:       s.unreadable,
		Reader:           s.Reader,
		Index:            s.index,
		BookmarkInterval: cfg.BookmarkInterval,
	})
	s.Writer = s.newWriter()
	s.reconciler = s.Writer.reconciler
	return s, nil
}

// View returns the service for callers of a released version of the API. It behaves like a gateway with an older
// catalogue: callers cannot name what the version lacks, answers do not show it, and writes keep it. A view shares
// everything else with the service, and needs no Run.
func (s *Service) View(names kind.Names) *Service { return s.view(s.kinds.View(names)) }

// Newest returns the service limited to the newest major version of the API. It is for a service whose catalogue is the
// union of two major versions. Like a [Service.View], the result shares everything else with the service and needs no
// Run.
func (s *Service) Newest(kinds []descriptor.Kind) (*Service, error) {
	newest, err := s.kinds.Newest(kinds)
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	return s.view(newest), nil
}

// Previous returns the service limited to the API's previous major version. Writes through it must also be valid in the
// newest catalogue. Only the newest catalogue determines which stored resources can be read, and which references and
// guards exist.
func (s *Service) Previous(kinds []descriptor.Kind) (*Service, error) {
	previous, err := s.kinds.Previous(kinds)
	if err != nil {
		return nil, fmt.Errorf("service: the previous major version: %w", err)
	}
	return s.view(previous), nil
}

// view returns a copy of the service with the given kinds.
func (s *Service) view(kinds kind.Catalogue) *Service {
	out := *s
	out.kinds = kinds
	out.Reader = s.Reader.View(out.kinds)
	out.Feed = s.Feed.View(out.kinds, out.Reader)
	out.Writer = s.Writer.view(out.kinds, out.Reader)
	return &out
}

func (s *Service) compile() (err error) {
	s.kinds, err = kind.Compile(s.cfg.Kinds)
	return err
}

// openHub sets the hub: the configured one, or a new one.
func (s *Service) openHub() (err error) {
	s.hub = s.cfg.Hub
	s.ownHub = s.hub == nil
	if s.ownHub {
		s.hub, err = hub.New(hub.Config{Store: s.cfg.Store, Logger: s.cfg.Logger})
	}
	return err
}

// openIndex makes the index, unless Config.IndexMemory is negative.
func (s *Service) openIndex() (err error) {
	if s.cfg.IndexMemory < 0 {
		return nil
	}
	s.index, err = index.New(index.Config{
		Store:  s.cfg.Store,
		Hub:    s.hub,
		Kinds:  query.Definitions(s.kinds),
		Bytes:  s.cfg.IndexMemory,
		Logger: s.cfg.Logger,
	})
	return err
}

// openPolicy sets the source of the policy: the configured one, or a new one. Without access control there is no
// source.
func (s *Service) openPolicy() (err error) {
	if !s.cfg.Access.Enabled {
		s.cfg.Policy = nil
		return nil
	}
	s.ownPolicy = s.cfg.Policy == nil
	if s.ownPolicy {
		s.cfg.Policy, err = policy.New(policy.Config{
			Store:  s.cfg.Store,
			Hub:    s.hub,
			Kinds:  s.cfg.Kinds,
			Logger: s.cfg.Logger,
		})
	}
	return err
}

// Run does the background work of the service until ctx ends, which is no error. It
//   - runs the hub and the policy, unless they were configured
//   - fills the index in memory
//   - mirrors the resources of other services
//   - re-evaluates waiting resources
//   - encrypts values with the first key, if they are not encrypted with it
//
// Without Run no resource stops waiting, each stream reads the store's log by itself, and filters read all resources of
// a kind.
func (s *Service) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if s.ownHub {
		g.Go(func() error { return s.hub.Run(ctx) })
	}
	if s.cfg.ReadOnly {
		g.Go(func() error { return s.reconciler.RunReadOnly(ctx) })
	} else {
		g.Go(func() error {
			s.reseal(ctx)
			return nil
		})
		g.Go(func() error { return s.reconciler.Run(ctx) })
		g.Go(func() error { return s.Writer.mirrors.Run(ctx) })
	}
	if s.ownPolicy {
		g.Go(func() error { return s.Reader.PolicySource().Run(ctx) })
	}
	if s.index != nil {
		g.Go(func() error { return s.index.Run(ctx) })
	}
	return g.Wait()
}

// Index returns the index in memory; nil if there is none.
func (s *Service) Index() *index.Index { return s.index }

// Now returns the time of the store's clock.
func (s *Service) Now() time.Time { return s.clock() }

// OldestDeletion returns the time at which the oldest pending deletion was requested, among the resources in memory;
// the zero time if no deletion is pending.
func (s *Service) OldestDeletion() (oldest time.Time) {
	for served := range s.inMemory() {
		served.Scan(index.Run{Index: kind.DeletionIndex}, false, func(_ string, e *index.Entry) bool {
			st, err := kind.StateOf(&e.Resource)
			if err != nil {
				return true
			}
			if at := st.Meta.DeletionRequestedAt; oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
			return false
		})
	}
	return oldest
}

// DeletionsBefore returns the number of resources in memory whose deletion was requested before at.
func (s *Service) DeletionsBefore(at time.Time) (waiting int) {
	run := index.Run{Index: kind.DeletionIndex, End: kind.AppendTime(nil, at)}
	for served := range s.inMemory() {
		waiting += served.Len(run)
	}
	return waiting
}

// maxWaitingLooks is the maximum number of waiting resources that are read to find the oldest.
const maxWaitingLooks = 1000

// Waiting returns how many resources in memory wait for a target of their references. oldest is when the oldest of the
// first thousand waiting resources began to wait; the zero time if none waits.
func (s *Service) Waiting() (waiting int, oldest time.Time) {
	pair := kind.Pair(dependency.Progressing, dependency.ReasonWaiting)
	run := index.Run{Index: kind.ReasonIndex, Start: pair, End: append(slices.Clone(pair), math.MaxUint8)}
	looks := 0
	for served := range s.inMemory() {
		waiting += served.Len(run)
		served.Scan(run, false, func(_ string, e *index.Entry) bool {
			looks++
			if looks > maxWaitingLooks {
				return false
			}
			st, err := kind.StateOf(&e.Resource)
			if err != nil {
				return true
			}
			at := dependency.WaitingSince(st.Status())
			if oldest.IsZero() || !at.IsZero() && at.Before(oldest) {
				oldest = at
			}
			return true
		})
	}
	return waiting, oldest
}

// inMemory returns the kinds that are kept in memory.
func (s *Service) inMemory() iter.Seq[*index.Kind] {
	return func(yield func(*index.Kind) bool) {
		if s.index == nil {
			return
		}
		view := s.index.Current()
		for _, k := range s.kinds.All() {
			if served, ok := view.Kind(k.Name); ok && !yield(served) {
				return
			}
		}
	}
}

// Body returns the shape of the stored bodies of a kind; nil if the kind is unknown.
func (s *Service) Body(kind string) *body.Shape {
	return s.kinds.Body(kind)
}

// Kind returns the kind with a name. The name may be singular or plural and in any case.
func (s *Service) Kind(name string) (*descriptor.Kind, error) {
	k, err := s.kinds.Find(name)
	if err != nil {
		return nil, err
	}
	return k.Kind, nil
}

// KeyOf returns the key that a global id encodes. The error is BAD_USER_INPUT if the id is not valid in this API.
func (s *Service) KeyOf(id string) (backend.Key, error) { return s.kinds.KeyOf(id) }

// Stored returns the kinds as they are stored. A view of the service may have fewer kinds, or other names for them.
func (s *Service) Stored() []descriptor.Kind { return s.cfg.Kinds }

// Kinds returns the kinds of the catalogue, in its order.
func (s *Service) Kinds() []*descriptor.Kind { return s.kinds.Descriptors() }

// Rebinding reports whether stored references of a kind still follow the declarations of an earlier catalogue. If this
// gateway's catalogue is the newest, the references are being updated. Until then the store guards the targets by the
// earlier declarations.
func (s *Service) Rebinding(ctx context.Context, name string) (bool, error) {
	k, err := s.kinds.Find(name)
	if err != nil {
		return false, err
	}
	yes, err := s.reconciler.Rebinding(ctx, k)
	if err != nil {
		return false, failure.Of(err, backend.Key{Kind: k.Name})
	}
	return yes, nil
}
