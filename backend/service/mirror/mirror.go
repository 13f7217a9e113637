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

// Config of [Mirrors]. Fields without a default are required.
type Config struct {
	// Owners are the services, by the names that kinds have in Service.
	Owners map[string]owner.Service
	// Kinds are all kinds of the catalogue.
	Kinds      kind.Catalogue
	Reconciler *reconcile.Reconciler
	// Sender sends writes of callers. A mirror's own writes are sent in the same way, with a tag
	// that begins with the tag of Sender, so that they count as writes of this gateway.
	Sender *sender.Sender
	// Locks are the locks of keys. Writers hold them while they call a service.
	Locks Locks
	// NewID makes uids and ids of writes.
	NewID func() string
	// CompareIntervals are the pauses between comparisons, by name of the service. Default:
	// DefaultCompareInterval, and UnfollowedInterval for kinds whose changes the service does not
	// announce.
	CompareIntervals map[string]time.Duration
	// RetainEntries is the number of changes that the store keeps in its log; 0 if it
	// is unknown.
	RetainEntries int
	Logger        *zap.Logger
}

// Locks are the locks of keys in one gateway.
type Locks interface {
	// TryLock locks a key. It returns false if the key is locked.
	TryLock(key backend.Key) bool
	Unlock(key backend.Key)
}

// Mirrors are the mirrors of all services that own kinds.
type Mirrors struct {
	byName map[string]*Mirror
}

// New returns the mirrors of the services that own kinds. It starts nothing.
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

// Run mirrors all services until ctx ends.
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

// Of returns the mirror of the service that owns a kind; UNAVAILABLE if this gateway does not know the service.
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

// Remove asks the owner of a resource in the background to delete it, if its deletion was requested
// and nothing is bound to it. Failures are retried. Remove does nothing if this gateway does not
// know the owner.
func (s *Mirrors) Remove(k *kind.Kind, key backend.Key) {
	if m := s.byName[k.Service]; m != nil {
		m.removals.add(key)
	}
}

// Mirror is the mirror of a service.
type Mirror struct {
	cfg     Config
	name    string
	service owner.Service
	kinds   []*kind.Kind
	// own sends the mirror's own writes.
	own *sender.Sender
	// looks has keys to look at, removals keys of resources to delete.
	looks, removals *queue
	log             *zap.Logger
	// logOnce logs equal messages at most once in a few seconds.
	logOnce *zap.Logger
	// compareNow has an element if a comparison of everything is requested.
	compareNow chan struct{}
	// compareOnce requests a comparison the first time that following the changes fails.
	compareOnce sync.Once
	// deleted has the recently deleted records.
	deleted deletions
	// warned has the kinds for which warnOfFill has logged. Only compareAll uses it.
	warned map[string]bool

	mu sync.Mutex // guards all below
	// description is the service's latest description; nil before the first.
	description *owner.Description
	// problems are the reasons why kinds cannot be written, by name of the kind.
	problems map[string]string
	health
	// unreadable has resources that the service cannot show or that cannot be stored, with the
	// reasons. unnamed has keys that are invalid in the API, with the times at which they were last
	// shown. Both are bounded by maxNoted.
	unreadable map[backend.Key]string
	unnamed    map[backend.Key]time.Time
	// unnameable has the kinds with resources that have fields which the SDL does not
	// have.
	unnameable map[string]bool
	// held has, by kind, the resources that seem to have vanished at once. They are kept for now.
	held map[string]held
}

// held is a set of resources of a kind that seem to have vanished at once.
type held struct {
	count int
	since time.Time
}

// maxNoted bounds the number of remembered resources that cannot be mirrored.
const maxNoted = 10_000

// newMirror returns the mirror of a service. Each mirror has its own tag: the request ids of its
// own writes are the tag and a counter.
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

// Numbers of workers of a mirror.
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

// work calls do with keys of a queue until ctx ends.
func (m *Mirror) work(ctx context.Context, q *queue, most int, do func(context.Context, []backend.Key) undone) {
	for {
		keys := q.take(ctx, most)
		if len(keys) == 0 {
			return
		}
		q.done(keys, do(ctx, keys))
	}
}

// owns reports whether a key belongs to a kind of the service and is valid in the API. Other keys
// are counted, and logged once.
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

// kind returns a kind that the service owns; nil if it does not own the kind.
func (m *Mirror) kind(name string) *kind.Kind {
	at := slices.IndexFunc(m.kinds, func(k *kind.Kind) bool { return k.Name == name })
	if at < 0 {
		return nil
	}
	return m.kinds[at]
}

// look adds keys to the queue looks as soon as there is room.
func (m *Mirror) look(ctx context.Context, keys ...backend.Key) {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key backend.Key) bool { return !m.owns(key) })
	m.looks.awaitRoom(ctx)
	m.looks.add(keys...)
}

// identity returns a context whose caller is the service, for the mirror's own writes.
func (m *Mirror) identity(ctx context.Context) context.Context {
	return access.WithCaller(ctx, access.Caller{
		Identity: &access.Identity{Name: "service:" + m.name, Source: "service"},
	})
}
