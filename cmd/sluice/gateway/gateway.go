// Package gateway runs a gateway. It opens the store, the keys, the identities and the audit log. It serves the
// catalogue, and replaces the catalogue on request.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/policy"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/cmd/sluice/version"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/wait"
)

// Gateway is a gateway with its settings.
type Gateway struct {
	*config.Gateway
	out io.Writer // for the audit log
	// audit is nil if there is no audit log, or before it is opened.
	audit atomic.Pointer[auditing]
}

// New returns a gateway. Its audit log may be written to out.
func New(settings *config.Gateway, out io.Writer) *Gateway {
	return &Gateway{Gateway: settings, out: out}
}

func (s *Gateway) Run(ctx context.Context, log *zap.Logger) (err error) {
	defer reserveHeap()()
	hangup := make(chan os.Signal, 1) // before anything else: without it, SIGHUP ends the process
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	c, err := sdl.Read(s.Catalogue.Dir)
	if err != nil {
		return err
	}
	if err := s.refuseUnnumbered(&c); err != nil {
		return err
	}
	unlocked, err := KeySource{File: s.KeysFile, KMS: s.KMS}.read(ctx)
	if err != nil {
		return err
	}
	if unlocked.stale != "" {
		log.Warn(unlocked.stale)
	}
	keys := unlocked.ring
	filling := filler{file: s.Bootstrap, keys: keys, log: log, open: openBootstrap(ctx, s.Bootstrap, c)}
	if s.ReadOnly {
		filling.file = "" // a read-only gateway fills no store
	}
	if s.Store.URL == "" {
		if _, err = filling.fillEmbedded(ctx, s.Store.Data); err != nil {
			return err
		}
	}
	measures := newMeasures()
	settings := storeSettings{
		Store:    s.Store,
		readOnly: s.ReadOnly,
		lost:     s.auditLostHistory,
		patience: s.readyTimeout(),
		observe:  measures.store.writes(),
	}
	if s.Store.URL != "" {
		if settings.security, err = openRedisTLS(ctx, s.Store, log); err != nil {
			return exit.Usage(err)
		}
	}
	if filling.checked, err = filling.checkFirst(ctx, settings); err != nil {
		return err
	}
	store, name, err := settings.open(ctx, log)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, store.Close()); err == nil {
			log.Info("sluice stopped")
		}
	}()
	if _, err = filling.fill(ctx, store); err != nil {
		return err
	}
	store = measures.store.measured(store)
	if err = s.accept(ctx, c, catalogue.Gate{Store: store, ReadOnly: s.ReadOnly, Logger: log}); err != nil {
		return err
	}
	if err = whole(ctx, store); err != nil { // a bootstrap may have begun before the catalogue was recorded
		return err
	}
	if keys == nil {
		if err = refuseWithoutKeys(ctx, store, c.Stored); err != nil {
			return err
		}
	}
	if s.Catalogue.Dir != "" {
		if err := reload.Tidy(s.Catalogue.Dir); err != nil {
			log.Warn("what an interrupted change of the catalogue has left cannot be removed", zap.Error(err))
		}
	}
	if err := s.openIdentities(ctx, log); err != nil {
		return err
	}
	exported, err := openTraces(ctx, traceSettings{endpoint: s.TracesEndpoint, lookup: os.Getenv}, log)
	if err != nil {
		return err
	}
	ownerClients, err := openOwners(ctx, s.Services, log)
	if err != nil {
		return exit.Usage(err)
	}
	changes, err := hub.New(hub.Config{Store: store, Logger: log, Lag: measures.hubLag})
	if err != nil {
		return err
	}
	var kinds *catalogues
	audit, err := s.openAudit(ctx, changes, func(kind string) bool { return kinds.sensitive(kind) }, log)
	if err != nil {
		return err
	}
	rights, err := s.rights(store, changes, c, log)
	if err != nil {
		return err
	}
	s.audit.Store(audit)
	all := shared{
		store: store, changes: changes, rights: rights, keys: keys, audit: audit, owners: ownerClients,
		measures: measures, traces: exported, security: settings.security,
	}
	kinds, err = s.gateway(ctx, c, all, log)
	if err != nil {
		return err
	}
	edges := []func(context.Context) error{func(ctx context.Context) error { return kinds.hangups(ctx, hangup) }}
	socket, err := s.listenAdmin(log)
	if err != nil {
		return err
	}
	if socket != nil {
		defer func() { err = errors.Join(err, socket.Close()) }()
		handlers := map[string]http.Handler{
			"POST " + reload.Path: s.Server.Reload,
			"GET " + ExportPath:   kinds.exports.handler(true),
			"GET " + BackupPath:   backups{on: all, log: log}.handler(true),
		}
		edges = append(edges, func(ctx context.Context) error { return socket.Serve(ctx, handlers) })
	}
	// Listen as late as possible, when the gateway is sure to start and can serve requests.
	listener, err := listenOn("listen", s.Listen)
	if err != nil {
		return err
	}
	if s.ServiceListen != "" {
		methods, err := listenOn("service-listen", s.ServiceListen)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		log.Info("sluice serves standard methods", zap.String("address", s.scheme()+methods.Addr().String()))
		edges = append(edges, func(ctx context.Context) error { return kinds.server.ServeMethods(ctx, methods) })
	}
	debug, err := s.listenDebug()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if debug != nil {
		log.Info("profiles and the state are shown", zap.String("address", "http://"+debug.Addr().String()+debugStatePath))
		edges = append(edges, func(ctx context.Context) error {
			return serveDebug(ctx, debug, func() debugState { return kinds.state(all) })
		})
	}
	log.Info("sluice serves", zap.String(
		"version",
		version.Text(),
	), zap.String("store", name), zap.String("address", s.scheme()+listener.Addr().String()),
		zap.String("catalogue", c.Outline.Hash()), zap.String("files", c.Files))
	manager := serviceManager{log: log, alive: func() { kinds.current() }}
	edges = append(
		edges,
		func(ctx context.Context) error { return kinds.server.Serve(ctx, listener) },
		func(ctx context.Context) error { return manager.Run(ctx, s.scheme()+listener.Addr().String()) },
	)
	below := []func(context.Context) error{
		returnMemory,
		audit.Run,
		exported.Run,
		s.Server.Identities.Run,
		s.Server.TLS.Run,
		ownerClients.Run,
		settings.security.Run,
		changes.Run,
		kinds.Run,
		store.Run,
		manager.Watch,
	}
	if rights != nil {
		below = append(below, rights.Run)
	}
	if s.Store.URL != "" {
		below = append(below, func(ctx context.Context) error { return watchBootstrap(ctx, store) })
	}
	return group(ctx, edges, below...)
}

// listenOn listens on the address of a setting.
func listenOn(setting, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use by another process; choose another address with --%s", setting, address, setting)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return listener, nil
}

// accept submits the catalogue to the store when the gateway starts.
func (s *Gateway) accept(ctx context.Context, c sdl.Catalogue, gate catalogue.Gate) error {
	candidate, err := s.candidate(ctx, c, gate)
	if err != nil {
		return err
	}
	return sdl.Accept(ctx, gate, candidate)
}

// candidate returns the catalogue of the gateway for submission to the store. It returns an error if the catalogue
// breaks clients of its released versions, unless the store has accepted the same files before.
func (s *Gateway) candidate(ctx context.Context, c sdl.Catalogue, gate catalogue.Gate) (catalogue.Candidate, error) {
	checked, err := gate.Recorded(ctx, c.Files)
	if err != nil {
		return catalogue.Candidate{}, err
	}
	if !c.Complete() || !checked && c.HasReleased() {
		if err := c.CheckReleased(); err != nil {
			return catalogue.Candidate{}, err
		}
	}
	candidate := c.Candidate()
	candidate.AllowBreaking = s.Catalogue.AllowBreaking
	candidate.Start = true
	return candidate, nil
}

// auditLostHistory writes to the audit log that the store has lost changes that the gateway had seen.
func (s *Gateway) auditLostHistory(h redis.History) {
	if audit := s.audit.Load(); audit != nil {
		audit.LoseHistory(context.Background(), h.Before, h.Now, h.Lost)
	}
}

// listenAdmin creates the admin socket; nil if there is none. If the default socket cannot be created, that is not an
// error, because the path of the data folder may be too long for a socket.
func (s *Gateway) listenAdmin(log *zap.Logger) (*reload.Socket, error) {
	path := s.Catalogue.AdminSocket
	if path == "" && s.Store.URL == "" {
		path = config.DefaultAdminSocket(s.Store.Data)
	}
	if path == "" {
		return nil, nil
	}
	socket, err := reload.Listen(path)
	if errors.Is(err, reload.ErrTooLong) && s.Catalogue.AdminSocket == "" {
		log.Warn("there is no admin socket; choose a shorter path with --admin-socket", zap.Error(err))
		return nil, nil
	}
	if err != nil && s.ReadOnly && s.Catalogue.AdminSocket == "" { // the folder may be one that only others write to
		log.Warn("there is no admin socket; choose a path with --admin-socket", zap.Error(err))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("admin-socket: %w", err)
	}
	return socket, nil
}

// rights returns the roles and bindings of the gateway; nil if it has no access control.
func (s *Gateway) rights(
	store gatewayStore,
	changes *hub.Hub,
	c sdl.Catalogue,
	log *zap.Logger,
) (*policy.Source, error) {
	if !s.Identities.Given() {
		return nil, nil
	}
	return policy.New(policy.Config{Store: store, Hub: changes, Kinds: c.Stored, Logger: log})
}

// shared has the parts of a gateway that all its catalogues use. They remain when the catalogue is replaced.
type shared struct {
	store   gatewayStore
	changes *hub.Hub
	rights  *policy.Source // nil without access control
	keys    *keyring.Keyring
	audit   *auditing // nil for none
	owners  *owners
	// measures are the metrics that the parts of the gateway update.
	measures *measures
	traces   *traces // nil for none
	// security is the TLS configuration of the connections to Redis; nil if they do not use TLS.
	security *redisTLS
}

// gateway creates the server and the services on an open store.
func (s *Gateway) gateway(ctx context.Context, c sdl.Catalogue, on shared, log *zap.Logger) (*catalogues, error) {
	compile := s.compiler(on, log)
	svc, err := compile(c)
	if err != nil {
		return nil, err
	}
	dir := s.Catalogue.Dir
	if dir != "" { // apply removes the folder that was there before: it may be the one that the process is in
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, fmt.Errorf("catalogue: %w", err)
		}
	}
	out := newCatalogues(dir, c, svc)
	if s.Identities.Given() && s.Identities.AdminGroup == "" {
		log.Info("callers may do what AccessBindings allow; without any, nobody may do anything (admin-group makes administrators)")
	}
	out.gate = catalogue.Gate{Store: on.store, ReadOnly: s.ReadOnly, Logger: log}
	out.log = log
	logUnconfigured(log, svc)
	out.keys = on.keys
	out.compile = compile
	if on.audit != nil {
		out.replaced = on.audit.Replace
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(s.collectors(out, on)...)
	out.numbers = s.FieldNumbers
	if s.Server.Catalogue, err = out.servedCatalogue(c, svc); err != nil {
		return nil, err
	}
	s.Server.Metrics = reg
	s.configureServer(out, on, log)
	out.server, err = wait.Until(ctx, func() (*server.Server, error) {
		return server.New(s.Server) // it may block while it reads trusted documents
	})
	return out, err
}

// compiler returns a function that creates the service of a catalogue.
func (s *Gateway) compiler(on shared, log *zap.Logger) func(sdl.Catalogue) (*service.Service, error) {
	unreadable := kind.NewUnreadableCounter(func(kind string) { on.measures.unreadable.WithLabelValues(kind).Inc() })
	return func(c sdl.Catalogue) (*service.Service, error) {
		cfg := service.Config{
			Kinds:       c.Stored,
			Store:       on.traces.Store(on.store, s.Store.URL != ""),
			Tracer:      on.traces.Tracer(),
			Hub:         on.changes,
			Keys:        on.keys,
			IndexMemory: indexMemory(s.IndexMemory),
			Logger:      log,
			Unreadable:  unreadable,
			ReadOnly:    s.ReadOnly,
			Access:      access.Config{Enabled: s.Identities.Given(), AdminGroup: s.Identities.AdminGroup},
			Policy:      on.rights,
			Owners:      counted(on.owners.services(), on.measures.calls),
			Observe:     on.measures.service(),

			CompareIntervals: s.Services.CompareIntervals(),
			RetainEntries:    s.Store.LogEntries * max(1, s.Store.Shards),
		}
		if on.audit != nil {
			cfg.Revealing = on.audit.Reveal
			cfg.Controlled = on.audit.Control
		}
		return service.New(cfg)
	}
}

// configureServer sets the fields of s.Server that depend on the store and the catalogue.
func (s *Gateway) configureServer(c *catalogues, on shared, log *zap.Logger) {
	s.Server.Logger = log
	s.Server.Tracer = on.traces.Tracer()
	s.Server.Version = version.Text()
	// Everybody may see the page, so it does not have the place of the data.
	s.Server.Store = "the embedded store"
	if s.Store.URL != "" {
		s.Server.Store = "Redis"
	}
	s.Server.ReadOnly = s.ReadOnly
	s.Server.Ready = c.ready(on.store, s.readyTimeout())
	s.Server.Filling = c.filling
	s.Server.Services = c.services
	s.Server.AnswersMemory = answersMemory(s.Server.AnswersMemory, indexMemory(s.IndexMemory))
	s.Server.Reload = reload.NewHandler(c)
	c.exports = newExports(on, log)
	s.Server.Export = c.exports.handler(false)
	s.Server.Backup = backups{on: on, log: log}.handler(false)
	if on.audit != nil {
		s.Server.Refused = on.audit.Refuse
	}
}
