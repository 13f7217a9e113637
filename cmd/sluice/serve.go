package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/server"
)

// serving is a gateway with its settings.
type serving struct{ *config.Gateway }

func serveCommand(std streams) *cobra.Command {
	s := serving{config.NewGateway()}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a gateway on the embedded store or on Redis",
		Long: "Run a gateway on the embedded store, or on Redis with --redis.\n\nEvery flag is also an environment variable (--listen is SLUICE_LISTEN) and a key of\n" +
			"the configuration file (listen). A flag takes precedence over the environment, and that over the file.",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := loadSettings(cmd); err != nil {
				return err
			}
			if err := s.Validate(cmd.Flags()); err != nil {
				return usageError{errors.New(oneLine(err))}
			}
			log, err := newLogger(std.err, s.LogLevel, s.LogFormat)
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), log)
		},
	}
	config.Register(cmd.Flags(), s.Settings())
	cmd.Flags().StringVar(&s.File, config.FileFlag, "", "configuration file (YAML)")
	return cmd
}

func (s serving) run(ctx context.Context, log *zap.Logger) error {
	defer reserveHeap()()
	kinds, api, err := catalogue{s.Catalogue}.load()
	if err != nil {
		return err
	}
	s.Server.Schema = api
	store, name, err := storing{s.Store}.open(ctx, log)
	if err != nil {
		return err
	}
	if err = (catalogue{s.Catalogue}).accept(ctx, kinds, store, log); err != nil {
		return errors.Join(err, store.Close())
	}
	svc, srv, err := s.gateway(kinds, store, log)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	// Who connects is served: nobody waits for a store that is still opened, and
	// none hears of a gateway that does not start.
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("listen: %s is in use by another process; choose another address with --listen", s.Listen)
		} else {
			err = fmt.Errorf("listen: %w", err)
		}
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
func (s serving) gateway(kinds []descriptor.Kind, store gatewayStore, log *zap.Logger) (*service.Service, *server.Server, error) {
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
	s.Server.Service, s.Server.Logger, s.Server.Metrics = svc, log, reg
	// The page is for everybody who reaches the gateway; where the data lies is not.
	s.Server.Version, s.Server.Store = versionText(), "the embedded store"
	if s.Store.URL != "" {
		s.Server.Store = "Redis"
	}
	s.Server.Ready = store.Ready
	srv, err := server.New(s.Server)
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
