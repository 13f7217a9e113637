package mirror

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/reconcile"
	"github.com/sluicegw/sluice/backend/service/sender"
)

// Config configures [Mirrors]. Fields without a default are required.
type Config struct {
	// Owners maps the names in descriptor.Kind.Service to the services.
	Owners map[string]owner.Service
	// Kinds are all kinds of the catalogue.
	Kinds      kind.Catalogue
	Reconciler *reconcile.Reconciler
	// Sender sends the writes of callers. Each mirror derives its own sender from it. The tag of the derived sender
	// begins with the tag of Sender, so that its writes count as writes of this gateway.
	Sender *sender.Sender
	// Locks are the key locks of this gateway. Writers hold the lock of a key while they call a service.
	Locks Locks
	// NewID returns a new id, for uids and for writes.
	NewID func() string
	// CompareIntervals maps the name of a service to the pause between comparisons. The default is
	// DefaultCompareInterval, or UnfollowedInterval for kinds whose changes the service does not announce.
	CompareIntervals map[string]time.Duration
	// RetainEntries is the number of changes that the store keeps in its log; 0 if the number is unknown.
	RetainEntries int
	Logger        *zap.Logger
}

// Locks locks keys within one gateway. Writers use the same locks.
type Locks interface {
	// TryLock locks a key and returns true. It returns false if the key is locked already.
	TryLock(key backend.Key) bool
	Unlock(key backend.Key)
}

// Mirrors has a mirror for each service that owns kinds.
type Mirrors struct {
	byName map[string]*Mirror
}

// New returns the mirrors of the services that own kinds. They begin to work when [Mirrors.Run] is called.
func New(cfg Config) *Mirrors {
	out := &Mirrors{byName: map[string]*Mirror{}}
	for _, k := range cfg.Kinds.All() {
		if k.Service == "" || cfg.Owners[k.Service] == nil {
			continue
		}
		m := out.byName[k.Service]
		if m == nil {
			m = newMirror(cfg, k.Service, fmt.Sprintf("%sm%d-", cfg.Sender.Tag, len(out.byName)))
			out.byName[k.Service] = m
		}
		m.kinds = append(m.kinds, k)
	}
	return out
}

// Run mirrors all services until ctx ends, and then returns nil.
func (s *Mirrors) Run(ctx context.Context) error {
	var g errgroup.Group
	for _, m := range s.byName {
		g.Go(func() error {
			m.run(ctx)
			return nil
		})
	}
	return g.Wait()
}

// Of returns the mirror of the service that owns a kind. It returns UNAVAILABLE if the service is not configured on
// this gateway.
func (s *Mirrors) Of(k *kind.Kind) (*Mirror, error) {
	if m := s.byName[k.Service]; m != nil {
		return m, nil
	}
	return nil, &failure.Error{
		Code:    failure.CodeUnavailable,
		Kind:    k.Name,
		Setting: "services",
		Message: "kind " + k.Name + " belongs to the service " + k.Service +
			", which is not configured on this gateway: nothing of it can be written here; send the change to a gateway " +
			"that has the service under services in its settings",
	}
}

// Remove makes the gateway ask the owner to delete a resource, if the deletion was requested and no resource is bound
// to this one. This happens in the background and is repeated after failures. If the owner is not configured on this
// gateway, Remove does nothing.
func (s *Mirrors) Remove(k *kind.Kind, key backend.Key) {
	if m := s.byName[k.Service]; m != nil {
		m.removals.add(key)
	}
}

// Unreadable returns the resources of a kind that its service has and that cannot be mirrored, with the reasons. It
// returns nil if there are none, or if the service of the kind is not configured on this gateway.
func (s *Mirrors) Unreadable(k *kind.Kind) map[backend.Key]string {
	m := s.byName[k.Service]
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out map[backend.Key]string
	for key, why := range m.unreadable {
		if key.Kind != k.Name {
			continue
		}
		if out == nil {
			out = map[backend.Key]string{}
		}
		out[key] = why
	}
	return out
}

// Mirror is the mirror of a service.
type Mirror struct {
	cfg     Config
	name    string
	service owner.Service
	kinds   []*kind.Kind
	// own sends the mirror's own writes.
	own *sender.Sender
	// looks is the queue of keys to look at. removals is the queue of keys whose resources are to be deleted.
	looks, removals *queue
	log             *zap.Logger
	// logOnce is a logger that drops a message if it has logged the same message a few seconds before.
	logOnce *zap.Logger
	// compareNow receives an element when a comparison of all kinds is requested.
	compareNow chan struct{}
	// compareOnce requests a comparison of all kinds when following the changes fails for the first time.
	compareOnce sync.Once
	// deleted remembers the recently deleted records.
	deleted deletions
	// warned is the set of kinds about which warnOfFill has logged. It is used only by compareAll.
	warned map[string]bool

	mu sync.Mutex // guards all below
	// description is the service's latest description; nil before the first.
	description *owner.Description
	// problems maps the name of a kind to the reason why it cannot be written.
	problems map[string]string
	health
	// unreadable maps the key of a resource to the reason why the service cannot show the resource or why it cannot be
	// stored. unnamed maps a key that is invalid in the API to the time at which the service last showed it. Both have
	// at most maxNoted elements.
	unreadable map[backend.Key]string
	unnamed    map[backend.Key]time.Time
	// unnameable is the set of kinds with resources that have fields which the SDL does not have.
	unnameable map[string]bool
	// held maps the name of a kind to the description of its resources that were suddenly absent.
	held map[string]held
}

// held describes resources of a kind whose records are kept although the resources are absent: see holdTime. since is
// when the resources were found to be absent.
type held struct {
	count int
	since time.Time
}

// maxNoted is the maximum number of remembered resources that cannot be mirrored.
const maxNoted = 10_000

// newMirror returns the mirror of a service. tag is the prefix of the request ids of the mirror's own writes.
func newMirror(cfg Config, name, tag string) *Mirror {
	log := cfg.Logger.With(zap.String("service", name))
	own := &sender.Sender{
		Store:          cfg.Sender.Store,
		Hub:            cfg.Sender.Hub,
		Clock:          cfg.Sender.Clock,
		Tag:            tag,
		WriteTimeout:   cfg.Sender.WriteTimeout,
		OutcomeTimeout: cfg.Sender.OutcomeTimeout,
	}
	return &Mirror{
		cfg:        cfg,
		name:       name,
		service:    cfg.Owners[name],
		own:        own,
		looks:      newQueue(),
		removals:   newQueue(),
		log:        log,
		logOnce:    reconcile.LogOnce(log),
		compareNow: make(chan struct{}, 1),
		warned:     map[string]bool{},
		health: health{
			compared: map[string]time.Time{},
			failures: map[string]error{},
			endless:  map[string]error{},
		},
		unreadable: map[backend.Key]string{},
		unnamed:    map[backend.Key]time.Time{},
		unnameable: map[string]bool{},
		held:       map[string]held{},
	}
}

// The numbers of goroutines that look at keys and that delete resources.
const (
	lookWorkers    = 4
	removalWorkers = 4
)

// run mirrors the service until ctx ends.
func (m *Mirror) run(ctx context.Context) {
	var g sync.WaitGroup
	for range lookWorkers {
		g.Go(func() { m.work(ctx, m.looks, owner.MaxKeys, m.lookQueued) })
	}
	for range removalWorkers {
		g.Go(func() { m.work(ctx, m.removals, 1, m.removeQueued) })
	}
	g.Go(func() { m.follow(ctx) })
	g.Go(func() { m.compareAll(ctx) })
	g.Go(func() { m.followAdded(ctx) })
	g.Wait()
}

// work takes keys from a queue and calls do with them, until ctx ends. most is the maximum number of keys for one call
// of do.
func (m *Mirror) work(ctx context.Context, q *queue, most int, do func(context.Context, []backend.Key) undone) {
	for {
		keys := q.take(ctx, most)
		if len(keys) == 0 {
			return
		}
		q.done(keys, do(ctx, keys))
	}
}

// owns reports whether the service owns the kind of a key and the key is valid in the API. It counts and logs invalid
// keys.
func (m *Mirror) owns(key backend.Key) bool {
	k := m.kind(key.Kind)
	if k == nil {
		return false
	}
	if _, at, err := m.cfg.Kinds.Resolve(kind.IdentityOf(key)); err == nil && at == key {
		return true
	}
	m.mu.Lock()
	_, known := m.unnamed[key]
	room := len(m.unnamed) < maxNoted
	if known || room {
		m.unnamed[key] = time.Now()
	}
	m.mu.Unlock()
	if !known && room {
		m.log.Warn("a resource of the service has a name that the API cannot have, and is left out",
			zap.String("kind", key.Kind), zap.String("namespace", failure.Shorten(key.Namespace)),
			zap.String("name", failure.Shorten(key.Name)))
	}
	return false
}

// kind returns the kind with a name; nil if the service does not own it.
func (m *Mirror) kind(name string) *kind.Kind {
	at := slices.IndexFunc(m.kinds, func(k *kind.Kind) bool { return k.Name == name })
	if at < 0 {
		return nil
	}
	return m.kinds[at]
}

// look adds keys to the queue looks, except keys that the service does not own. It first waits while the queue is full.
func (m *Mirror) look(ctx context.Context, keys ...backend.Key) {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key backend.Key) bool { return !m.owns(key) })
	m.looks.awaitRoom(ctx)
	m.looks.add(keys...)
}

// identity returns a context whose caller is the service. The mirror uses it for its own writes.
func (m *Mirror) identity(ctx context.Context) context.Context {
	return access.WithCaller(ctx, access.Caller{
		Identity: &access.Identity{Name: "service:" + m.name, Source: "service"},
	})
}
