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

// Config of [Mirrors]. All are required.
type Config struct {
	// Owners are the services, by the names that kinds have in Service.
	Owners map[string]owner.Service
	// Kinds are all kinds of the catalogue.
	Kinds      kind.Catalogue
	Reconciler *reconcile.Reconciler
	// Sender sends what callers cause. What mirrors do by themselves is sent like it, with a tag that begins with its
	// tag, so that it is this gateway's.
	Sender *sender.Sender
	// Locks are the locks of keys, which writers hold while they ask a service.
	Locks Locks
	// NewID makes uids and ids of writes.
	NewID func() string
	// CompareIntervals are how often everything of a service is compared, by its name. Default:
	// DefaultCompareInterval, and UnfollowedInterval for kinds of whose changes the service does not tell.
	CompareIntervals map[string]time.Duration
	// RetainEntries is how many changes the store keeps; 0 if that is not known.
	RetainEntries int
	Logger        *zap.Logger
}

// Locks are the locks of keys of one gateway.
type Locks interface {
	// TryLock locks a key, unless somebody else holds its lock.
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

// Remove asks the owner of a resource to delete it, later and as often as that fails, if its deletion was requested and
// nothing is bound to it. It does nothing if this gateway does not know the owner.
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
	// own sends what the mirror does by itself.
	own *sender.Sender
	// looks are keys that are to be looked at, and removals keys of resources that are to be deleted.
	looks, removals *queue
	log             *zap.Logger
	// logOnce logs each message at most every few seconds.
	logOnce *zap.Logger
	// compareNow has an element if everything is to be compared.
	compareNow chan struct{}
	// deleted are the records that were deleted lately.
	deleted deletions
	// warned are the kinds for which warnOfFill has logged. compareAll alone uses it.
	warned map[string]bool

	mu sync.Mutex // guards all below
	// description is the last one of the service, nil before the first.
	description *owner.Description
	// problems say why kinds cannot be written, by their names.
	problems map[string]string
	health
	// unreadable are resources that the service cannot show or that cannot be stored, with the reasons. unnamed are
	// keys that the API cannot have, with the times at which they were shown last. Both are bounded by maxNoted.
	unreadable map[backend.Key]string
	unnamed    map[backend.Key]time.Time
	// unnameable are the kinds of which resources have fields that the SDL does not have.
	unnameable map[string]bool
	// held are the resources that seem to have vanished at once, by kinds.
	held map[string]held
}

// held are resources of a kind that seem to have vanished at once.
type held struct {
	count int
	since time.Time
}

// maxNoted is how many resources are remembered that cannot be mirrored.
const maxNoted = 10_000

// newMirror returns the mirror of a service. The tag begins the request ids of what it does by itself, and is no other
// mirror's: each counts them.
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

// Workers of a mirror.
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

// work hands keys of a queue to do, until ctx ends.
func (m *Mirror) work(ctx context.Context, q *queue, most int, do func(context.Context, []backend.Key) undone) {
	for {
		keys := q.take(ctx, most)
		if len(keys) == 0 {
			return
		}
		q.done(keys, do(ctx, keys))
	}
}

// owns reports whether a key is of a kind that the service owns, and one that the API can have. Others are counted, and
// logged once.
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

// kind returns a kind that the service owns, nil if it does not own it.
func (m *Mirror) kind(name string) *kind.Kind {
	at := slices.IndexFunc(m.kinds, func(k *kind.Kind) bool { return k.Name == name })
	if at < 0 {
		return nil
	}
	return m.kinds[at]
}

// look adds keys to those that are looked at, once there is room for them.
func (m *Mirror) look(ctx context.Context, keys ...backend.Key) {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key backend.Key) bool { return !m.owns(key) })
	m.looks.awaitRoom(ctx)
	m.looks.add(keys...)
}

// identity returns a context in which the service itself acts: what the mirror writes by itself is the service's.
func (m *Mirror) identity(ctx context.Context) context.Context {
	return access.WithCaller(ctx, access.Caller{
		Identity: &access.Identity{Name: "service:" + m.name, Source: "service"},
	})
}
