package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/answer"
	"github.com/sluicegw/sluice/graph/console"
	"github.com/sluicegw/sluice/graph/core"
	"github.com/sluicegw/sluice/graph/deprecation"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/rpc"
	"github.com/sluicegw/sluice/graph/stream"
	"github.com/sluicegw/sluice/graph/transport"
	"github.com/sluicegw/sluice/resolvers"
)

// Catalogue is a set of APIs that a server serves.
type Catalogue struct {
	// Hash is the hash of the parts of the catalogue that concern stored resources, Files the hash
	// of its files. /metrics and /readyz show both.
	Hash, Files string
	// API is the newest API, including what has not been released. Required.
	API API
	// Versions are the released versions, including withdrawn ones. Default: none.
	Versions []Version
	// Methods are the standard methods. Default: there are none.
	Methods Methods
}

// API is the API of a catalogue, or one version of it.
type API struct {
	// Service executes its operations. Required.
	Service *service.Service
	// Schema is the API of the service's kinds. Required.
	Schema *ast.Schema
}

// Single returns a catalogue with one API, the newest.
func Single(svc *service.Service, schema *ast.Schema) Catalogue {
	return Catalogue{API: API{Service: svc, Schema: schema}}
}

// consoleEndpoint is the path of the API that the page at / uses if nothing has been released.
const consoleEndpoint = "/" + firstMajor + apiPath

// endpoint returns the path of the API that the page at / uses. Its API includes what has not been
// released.
func (c Catalogue) endpoint() string {
	if c.released() {
		return apiPath
	}
	return consoleEndpoint
}

// released reports whether any version has been released. A candidate does not count.
func (c Catalogue) released() bool {
	return slices.ContainsFunc(c.Versions, func(v Version) bool { return !v.Candidate })
}

// validate refuses a catalogue without a complete newest API.
func (c Catalogue) validate() error {
	if c.API.Service == nil || c.API.Schema == nil {
		return errors.New("catalogue: the newest API wants service and schema")
	}
	return nil
}

// Generation is a catalogue that is ready to be served.
type Generation struct {
	catalogue Catalogue
	// executors of the APIs, by name. Unsupported serves connections to an API that is not
	// served.
	executors   map[string]*transport.Executor
	unsupported *transport.Executor
	// engine of the newest API.
	engine *engine.Engine
	// versions are the released versions, the oldest first. served holds the versions that requests
	// can reach, by the names of the version and of its major.
	versions []Version
	served   map[string]*servedVersion
	// released is whether any version has been released; a candidate does not count.
	released bool
	cache    *documentCache
	// answers is the cache of answers; nil if answers are not cached.
	answers *answer.Cache
	console http.Handler
	// methods are the standard methods; nil if there are none.
	methods *rpc.Handler
	// outline of the kinds. A later generation compares it with its own to decide which
	// streams must end.
	outline catalogue.Outline
	// streams are the subscriptions that were started on this generation. everyKind has, for each
	// API, those that follow all kinds.
	streams   *stream.Set
	everyKind []everyKind
}

// everyKind are the subscriptions to the changes of all kinds of an API.
type everyKind struct {
	// follows is the name of the API that clients of these streams would reach now. The streams end
	// if that API has a kind that the one they began on lacks: after a release, the path of a major
	// leads to another version.
	follows string
	kinds   map[string]bool
	streams *stream.Set
}

// everyKindOf makes the set of an API.
func everyKindOf(name string, version API) everyKind {
	major, _, _ := strings.Cut(name, ".")
	out := everyKind{follows: major, kinds: map[string]bool{}, streams: stream.NewSet()}
	for _, k := range version.Service.Kinds() {
		out.kinds[k.Name] = true
	}
	return out
}

// kindsOf returns the kinds of an API; none if the API is not served.
func (g *Generation) kindsOf(name string) []*descriptor.Kind {
	if name == newestAPI {
		return g.catalogue.API.Service.Kinds()
	}
	if v := g.served[name]; v != nil {
		return v.API.Service.Kinds()
	}
	return nil
}

// Prepare makes a catalogue ready to be served. [Server.Replace] serves it.
func (s *Server) Prepare(c Catalogue) (*Generation, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	g := &Generation{
		catalogue: c,
		executors: map[string]*transport.Executor{},
		cache:     newDocumentCache(s.cfg.Limits.CachedTokens),
		streams:   stream.NewSet(),
	}
	if s.cfg.AnswersMemory > 0 {
		g.answers = answer.New(answer.Config{Bytes: s.cfg.AnswersMemory, Stats: &s.answered})
	}
	newest := c.API
	if err := s.addAPI(g, newestAPI, newest); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if err := s.addVersions(g); err != nil {
		return nil, err
	}
	if err := s.addMethods(g); err != nil {
		return nil, err
	}
	g.outline = catalogue.OutlineOf(newest.Service.Stored())
	var issuers []string
	for _, one := range s.cfg.Identities.Issuers.Logins() {
		issuers = append(issuers, one.URL)
	}
	front, err := console.New(console.Config{
		Version:  s.cfg.Version,
		Store:    s.cfg.Store,
		Schema:   newest.Schema,
		Kinds:    newest.Service.Kinds(),
		Endpoint: c.endpoint(),
		Issuers:  issuers,
	})
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	g.console = front
	return g, nil
}

// addAPI makes the executor of one API.
func (s *Server) addAPI(g *Generation, name string, version API) error {
	every := everyKindOf(name, version)
	g.everyKind = append(g.everyKind, every)
	eng, err := engine.New(engine.Config{
		Service: version.Service, Schema: version.Schema, LoaderWait: s.cfg.LoaderWait,
		Streams: g.streams, EveryKind: every.streams, Answers: g.answers,
		BadTime:    func(kind string) { s.metrics.badTimes.WithLabelValues(kind).Inc() },
		Deprecated: s.useDeprecated,
		Tracer:     s.cfg.Tracer,
		Core: core.NewExecutableSchema(core.Config{
			Schema:    version.Schema,
			Resolvers: resolvers.New(version.Service),
		}),
	})
	if err != nil {
		return err
	}
	if name == newestAPI {
		g.engine = eng
	}
	operations := &api{Server: s, subject: eng.Subject}
	if len(g.catalogue.Versions) > 0 {
		operations.version = name
		if name == newestAPI {
			operations.version = unreleased
		}
		operations.operations = s.metrics.versions.WithLabelValues(operations.version)
	}
	g.executors[name] = transport.NewExecutor(transport.ExecutorConfig{
		Engine:   eng,
		Named:    s.documentsOf(version),
		Memory:   s.memory,
		Accounts: operations,
		Present:  operations.present,
		Answered: operations.answered,
		Recover:  s.recovered,
		Documents: &documents{
			schema: version.Schema, limits: s.cfg.Limits, hidden: s.cfg.HideIntrospection, spend: s.spend,
			cache: g.cache, api: name, plans: eng,
			deprecated: deprecation.New(version.Schema), useDeprecated: s.useDeprecated,
		},
	})
	return nil
}

// recovered logs a panic and returns the error for the client.
func (s *Server) recovered(ctx context.Context, p any) error {
	s.cfg.Logger.Error("panic in an operation", append(ids(ctx), zap.Any("panic", p), zap.Stack("stack"))...)
	return &failure.Error{Code: failure.CodeInternal, Message: "internal error"}
}

// How long streams continue after their catalogue was replaced.
const (
	// maxOlder is the maximum number of older generations that have streams. Another
	// replacement ends the streams of the oldest one.
	maxOlder = 2
	// olderLife is how long the streams of an older generation continue.
	olderLife = 10 * time.Minute
)

// older holds the streams of a generation that was replaced. It does not keep the generation
// itself in memory; running streams and operations keep the parts that they need.
type older struct {
	hash, files string
	outline     catalogue.Outline
	streams     *stream.Set
	everyKind   []everyKind
	stop        func() bool // the timer
}

// replaced are the generations before the current one, the oldest first.
type replaced struct {
	mu          sync.Mutex
	generations []*older
}

// Replace serves another generation from now on: operations that begin later, on open sockets too,
// use it. Running operations finish on the old one. Running streams end after ten minutes, or when
// a third generation follows, with CATALOGUE_CHANGED and the cursor to resume from. Streams that show
// something that the new generation hides end before anything is written by it, and so do streams for every
// kind if there is a new kind at their path.
func (s *Server) Replace(g *Generation) {
	s.replaced.mu.Lock()
	defer s.replaced.mu.Unlock()
	before := s.generation.Load()
	if before == g {
		return
	}
	if before != nil {
		o := &older{
			hash:      before.catalogue.Hash,
			files:     before.catalogue.Files,
			outline:   before.outline,
			streams:   before.streams,
			everyKind: before.everyKind,
		}
		o.stop = s.cfg.AfterFunc(olderLife, func() { s.retire(o) })
		s.replaced.generations = append(s.replaced.generations, o)
	}
	for _, o := range s.replaced.generations {
		o.endFor(g)
	}
	s.generation.Store(g)
	s.metrics.serve(before, g)
	if before != nil {
		before.cache.close() // no operation begins on it any more
		before.answers.Close()
	}
	for len(s.replaced.generations) > maxOlder {
		oldest := s.replaced.generations[0]
		s.replaced.generations = s.replaced.generations[1:]
		oldest.stop()
		oldest.streams.End()
	}
}

// endFor ends the streams that would show something that the next generation hides, and those that
// would miss the changes of a kind that is new in their API.
func (o *older) endFor(next *Generation) {
	if next.outline.Hides(o.outline) {
		o.streams.End()
	}
	for _, every := range o.everyKind {
		isNew := func(k *descriptor.Kind) bool { return !every.kinds[k.Name] }
		if slices.ContainsFunc(next.kindsOf(every.follows), isNew) {
			every.streams.End()
		}
	}
}

// retire ends the streams of an older generation.
func (s *Server) retire(o *older) {
	s.replaced.mu.Lock()
	s.replaced.generations = slices.DeleteFunc(s.replaced.generations, func(one *older) bool { return one == o })
	s.replaced.mu.Unlock()
	o.stop()
	o.streams.End()
}

// olderStreams returns a line for each older generation that has streams, the oldest first, and the
// number of all these streams.
func (s *Server) olderStreams() (out []string, total int) {
	s.replaced.mu.Lock()
	defer s.replaced.mu.Unlock()
	for _, o := range s.replaced.generations {
		if n := o.streams.Len(); n > 0 {
			out, total = append(out, fmt.Sprintf("%s files %s: %d streams", o.hash, o.files, n)), total+n
		}
	}
	return out, total
}

// executor returns the executor for an operation that starts now: the one of the current generation
// for the API of the request's path.
func (s *Server) executor(ctx context.Context) *transport.Executor {
	g := s.generation.Load()
	if executor := g.executors[factsOf(ctx).api]; executor != nil {
		return executor
	}
	return g.unsupported
}
