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

// Catalogue describes the APIs that a server serves.
type Catalogue struct {
	// Hash is the hash of those parts of the catalogue that concern stored resources, and Files the hash of its files.
	// /metrics and /readyz show both.
	Hash, Files string
	// API is the newest API, including parts that are not released. Required.
	API API
	// Versions are the released versions, including withdrawn ones. Default: none.
	Versions []Version
	// Methods are the standard methods that are served over gRPC. Default: none.
	Methods Methods
}

// API is the API of a catalogue, or a version of it.
type API struct {
	// Service executes its operations. Required.
	Service *service.Service
	// Schema is the API of the service's kinds. Required.
	Schema *ast.Schema
}

// Single returns a catalogue that has only the newest API.
func Single(svc *service.Service, schema *ast.Schema) Catalogue {
	return Catalogue{API: API{Service: svc, Schema: schema}}
}

// consoleEndpoint is the path of the API for the page at / if no version was released.
const consoleEndpoint = "/" + firstMajor + apiPath

// endpoint returns the path of the API for the page at /. It is the newest API, including parts that are not released.
func (c Catalogue) endpoint() string {
	if c.released() {
		return apiPath
	}
	return consoleEndpoint
}

// released reports whether a version was released. Candidates do not count.
func (c Catalogue) released() bool {
	return slices.ContainsFunc(c.Versions, func(v Version) bool { return !v.Candidate })
}

// validate returns an error if the catalogue lacks a complete newest API.
func (c Catalogue) validate() error {
	if c.API.Service == nil || c.API.Schema == nil {
		return errors.New("catalogue: the newest API wants service and schema")
	}
	return nil
}

// Generation is a catalogue prepared for being served.
type Generation struct {
	catalogue Catalogue
	// executors has an executor for each API, by name. unsupported is for connections to an API that is not served.
	executors   map[string]*transport.Executor
	unsupported *transport.Executor
	// engine is the engine of the newest API.
	engine *engine.Engine
	// versions are the released versions, the oldest first. served maps the name of a version, and the name of its
	// major, to the version that requests reach by it.
	versions []Version
	served   map[string]*servedVersion
	// released reports whether a version was released. Candidates do not count.
	released bool
	cache    *documentCache
	// answers is the cache of answers; nil if none are kept.
	answers *answer.Cache
	console http.Handler
	// methods is the handler of the standard methods; nil if there are none.
	methods *rpc.Handler
	// outline is the outline of the kinds. A later generation compares it with its own, to find out which streams must
	// end.
	outline catalogue.Outline
	// streams is the set of all subscriptions of this generation. everyKind has, for each API, a set of the
	// subscriptions to changes of all kinds.
	streams   *stream.Set
	everyKind []everyKind
}

// everyKind is the set of the subscriptions to changes of all kinds in an API.
type everyKind struct {
	// follows is the name of the API that the clients of these streams would reach now. For example, after a release
	// the path of a major serves another version. The streams must end if that API has a kind that their own API lacks,
	// since they would miss the changes of the new kind.
	follows string
	kinds   map[string]bool
	streams *stream.Set
}

// everyKindOf returns an empty set for an API.
func everyKindOf(name string, version API) everyKind {
	major, _, _ := strings.Cut(name, ".")
	out := everyKind{follows: major, kinds: map[string]bool{}, streams: stream.NewSet()}
	for _, k := range version.Service.Kinds() {
		out.kinds[k.Name] = true
	}
	return out
}

// kindsOf returns the kinds of an API; none if it is not served.
func (g *Generation) kindsOf(name string) []*descriptor.Kind {
	if name == newestAPI {
		return g.catalogue.API.Service.Kinds()
	}
	if v := g.served[name]; v != nil {
		return v.API.Service.Kinds()
	}
	return nil
}

// Prepare prepares a catalogue for being served by [Server.Replace].
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

// addAPI adds the executor of an API.
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

// recovered logs a panic, and returns the error for the client.
func (s *Server) recovered(ctx context.Context, p any) error {
	s.cfg.Logger.Error("panic in an operation", append(ids(ctx), zap.Any("panic", p), zap.Stack("stack"))...)
	return &failure.Error{Code: failure.CodeInternal, Message: "internal error"}
}

// How long streams continue after their catalogue was replaced.
const (
	// maxOlder is how many older generations may have streams. If there is one more, the streams of the oldest end.
	maxOlder = 2
	// olderLife is how long streams of an older generation may continue.
	olderLife = 10 * time.Minute
)

// older has the streams of a replaced generation. It does not keep the generation in memory; running streams and
// operations keep the parts that they need.
type older struct {
	hash, files string
	outline     catalogue.Outline
	streams     *stream.Set
	everyKind   []everyKind
	stop        func() bool // the timer
}

// replaced has the replaced generations, the oldest first.
type replaced struct {
	mu          sync.Mutex
	generations []*older
}

// Replace begins to serve another generation. Operations that begin later use it, even on open sockets; running
// operations finish on the old generation. Running streams end with CATALOGUE_CHANGED and a cursor to resume from,
// after ten minutes or with the second replacement after this one. Two kinds of streams end at once: streams that show
// something that the new generation hides, before the new generation writes anything, and streams of all kinds, if the
// API at their path has a new kind.
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

// endFor ends the streams that must not continue while next is served: those that show something that next hides, and
// those that would miss the changes of a kind that is new in their API.
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

// olderStreams returns a line of text for each older generation with streams, the oldest first, and the total number of
// these streams.
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

// executor returns the executor for an operation that begins now. The path of the request in ctx selects the API, in
// the current generation.
func (s *Server) executor(ctx context.Context) *transport.Executor {
	g := s.generation.Load()
	if executor := g.executors[factsOf(ctx).api]; executor != nil {
		return executor
	}
	return g.unsupported
}
