package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/server"
)

// serving are the settings of a gateway.
type serving struct {
	listen, logLevel, logFormat string
	allowAnonymous              bool
	server                      server.Config
	store                       storing
	catalogue                   catalogue
}

func serveCommand(std streams) *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a gateway on the embedded store or on Redis",
		Long: "Run a gateway on the embedded store, or on Redis with --redis.\n\nEvery flag is also an environment variable (--listen is SLUICE_LISTEN) and a key of\n" +
			"the configuration file (listen). A flag goes before the environment, and that before the file.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loadSettings(cmd); err != nil {
				return err
			}
			log, err := newLogger(std.err, s.logLevel, s.logFormat)
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), log)
		},
	}
	f, l, d := cmd.Flags(), &s.server.Limits, &s.server.Documents
	f.StringVar(&s.listen, "listen", "127.0.0.1:8080", "address to listen on; port 0 picks a free one")
	s.store.flags(f)
	s.catalogue.flags(f)
	f.String(configFlag, "", "configuration file (YAML)")
	f.BoolVar(&s.allowAnonymous, "allow-anonymous", false, "serve everybody who reaches an address that is not loopback")
	f.StringSliceVar(&s.server.AllowedHosts, "allowed-hosts", nil, "Host names to serve besides IP addresses and localhost")
	f.StringSliceVar(&s.server.AllowedOrigins, "allowed-origins", nil, "Origins of browsers to serve besides the gateway's own")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&s.logFormat, "log-format", "auto", "console, json, or auto: console on a terminal")
	f.Int64Var(&l.Body, "limit-body", 4<<20, "most bytes of a request")
	f.Int64Var(&l.Bodies, "limit-bodies", 64<<20, "most bytes of all requests together that are being read or executed")
	f.IntVar(&l.Connections, "limit-connections", 0, "most connections; 0 is 1,000 more than limit-sockets and limit-streams together")
	f.IntVar(&l.Text, "limit-text", 256<<10, "most bytes of names and strings in a document; longer ones go into variables")
	f.IntVar(&l.Tokens, "limit-tokens", 5000, "most lexical tokens of a document, comments included")
	f.IntVar(&l.Validation, "limit-validation", 500_000, "most comparisons of fields that the validation of a document may take, estimated before it begins")
	f.IntVar(&l.CachedTokens, "limit-cached-tokens", 100_000, "how many tokens the documents have that are kept parsed")
	f.IntVar(&l.Depth, "limit-depth", 20, "deepest nesting of a document, fragments expanded")
	f.IntVar(&l.Aliases, "limit-aliases", 100, "most aliased fields of a document")
	f.IntVar(&l.Fields, "limit-fields", 2000, "most fields of a document, fragments expanded")
	f.IntVar(&l.Repeats, "limit-repeats", 20, "how often one selection set may name the same field")
	f.IntVar(&l.Fragments, "limit-fragments", 200, "most named fragments of a document")
	f.IntVar(&l.Introspections, "limit-introspections", 2, "how often a document may ask for the whole schema")
	f.IntVar(&l.Objects, "limit-objects", 2_000_000, "most resources that the pages of an operation may return; pages within pages multiply")
	f.IntVar(&l.Sockets, "limit-sockets", 10_000, "most WebSocket connections")
	f.IntVar(&l.SocketsWaiting, "limit-sockets-waiting", 0, "most of them that have not initialised; more close the oldest; 0 is half of limit-sockets")
	f.IntVar(&l.Streams, "limit-streams", 10_000, "most answers as server-sent events at once")
	f.IntVar(&l.Operations, "limit-operations", 100, "most operations that run on one WebSocket connection")
	f.IntVar(&l.Queue, "limit-queue", 256, "most events that wait for one listener's connection")
	f.IntVar(&l.QueueBytes, "limit-queue-bytes", 1<<20, "most bytes of them")
	f.Int64Var(&l.Message, "limit-message", 4<<20, "most bytes of a WebSocket message")
	f.DurationVar(&l.Time, "limit-time", 30*time.Second, "how long a query or mutation may take")
	f.StringSliceVar(&d.Trusted, "trusted-documents", nil, "manifests of documents that the compilers of Apollo, Relay or GraphQL Code Generator wrote")
	f.BoolVar(&d.TrustedOnly, "trusted-only", false, "execute documents of those manifests only")
	f.IntVar(&d.Registered, "registered-documents", 1000, "how many documents clients can register by their hash (automatic persisted queries)")
	f.BoolVar(&s.server.HideSchema, "hide-schema", false, "refuse introspection")
	f.DurationVar(&s.server.InitTimeout, "init-timeout", 10*time.Second, "how long a WebSocket client may take to initialise")
	f.DurationVar(&s.server.PingInterval, "ping-interval", 25*time.Second, "how often a WebSocket client is asked whether it is there")
	f.DurationVar(&s.server.WriteTimeout, "write-timeout", 10*time.Second, "how long a listener may take to accept 128 KiB before it is cut off")
	f.DurationVar(&s.server.BodyTimeout, "body-timeout", 10*time.Second, "how long a client may take to send 64 KiB of a request")
	f.DurationVar(&s.server.DrainDelay, "drain-delay", 0, "how long the gateway goes on to serve at shutdown while /readyz says that it stops")
	f.DurationVar(&s.server.DrainTimeout, "drain-timeout", 10*time.Second, "how long running requests may take at shutdown")
	return cmd
}

func (s *serving) run(ctx context.Context, log *zap.Logger) error {
	if err := errors.Join(s.checkListen(), s.server.ValidateSettings()); err != nil {
		return usageError{errors.New(oneLine(err))}
	}
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen: %s is in use by another process; choose another address with --listen", s.listen)
		}
		return fmt.Errorf("listen: %w", err)
	}
	defer func() { _ = listener.Close() }()
	kinds, api, err := s.catalogue.load()
	if err != nil {
		return err
	}
	s.server.Schema = api
	store, name, err := s.store.open(ctx, log)
	if err != nil {
		return err
	}
	if err := s.catalogue.accept(ctx, kinds, store, log); err != nil {
		return errors.Join(err, store.Close())
	}
	svc, srv, err := s.gateway(kinds, store, log)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	log.Info("sluice serves", zap.String("version", versionText()), zap.String("store", name), zap.String("address", "http://"+listener.Addr().String()))
	err = group(ctx, srv, listener, svc.Run, store.Run)
	if err = errors.Join(err, store.Close()); err == nil {
		log.Info("sluice stopped")
	}
	return err
}

// gateway wires service and server to an open store.
func (s *serving) gateway(kinds []backend.Kind, store gatewayStore, log *zap.Logger) (*service.Service, *server.Server, error) {
	reg := prometheus.NewRegistry()
	unreadable := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_unreadable_total", Help: "Stored resources that could not be read, by kind."}, []string{"kind"})
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), unreadable)
	svc, err := service.New(service.Config{
		Kinds: kinds, Store: store, Logger: log,
		Unreadable: func(kind string) { unreadable.WithLabelValues(kind).Inc() },
	})
	if err != nil {
		return nil, nil, err
	}
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_change_streams", Help: "Open change streams, over all transports."}, func() float64 {
			open, _ := svc.Streams()
			return float64(open)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sluice_change_streams_lagged_total", Help: "Change streams that were ended because their clients were too slow."}, func() float64 {
			_, lagged := svc.Streams()
			return float64(lagged)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sluice_store_unreadable_total", Help: "Stored data whose envelope could not be read and was passed over."}, func() float64 {
			return float64(store.Unreadable())
		}),
	)
	s.server.Service, s.server.Logger, s.server.Metrics = svc, log, reg
	// The page is for everybody who reaches the gateway; where the data lies is not.
	s.server.Version, s.server.Store = versionText(), "the embedded store"
	if s.store.url != "" {
		s.server.Store = "Redis"
	}
	s.server.Ready = store.Ready
	srv, err := server.New(s.server)
	return svc, srv, err
}

// group runs the edge and what it stands on until ctx ends or one of them
// fails. The edge is stopped first: running requests need the others.
func group(ctx context.Context, srv *server.Server, l net.Listener, below ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	belowCtx, stopBelow := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBelow()
	var g errgroup.Group
	for _, run := range below {
		g.Go(func() error {
			defer stop()
			return run(belowCtx)
		})
	}
	g.Go(func() error {
		defer stopBelow()
		return srv.Serve(ctx, l)
	})
	return g.Wait()
}

// checkListen refuses to serve the network by accident: there is no access control yet.
func (s *serving) checkListen() error {
	host, _, err := net.SplitHostPort(s.listen)
	if err != nil {
		return fmt.Errorf("listen: %q is not an address like 127.0.0.1:8080", s.listen)
	}
	ip := net.ParseIP(host)
	if s.allowAnonymous || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen: %s is not loopback, and everybody who reaches it may read and change everything; say --allow-anonymous if that is meant", s.listen)
}
