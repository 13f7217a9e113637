// Command cloud simulates a cloud for the example controller. Its API of objects is plain HTTP and JSON. Like a real
// cloud, it is slow, fails now and then, and needs time to make an object ready or to remove it. Its state is in a file
// and survives a kill.
//
//	go run ./examples/cloud --state cloud.jsonl --latency 50ms --faults 0.05
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var cfg config
	listen := flag.String("listen", "127.0.0.1:8090", "address to serve on")
	flag.StringVar(&cfg.state, "state", "cloud.jsonl", "file of the objects")
	flag.StringVar(&cfg.token, "token", "", "token that requests need; none: they need none")
	flag.DurationVar(&cfg.latency, "latency", 0, "the longest that a request waits before it is done")
	flag.DurationVar(&cfg.work, "work", time.Second, "how long it takes to make an object ready, and to remove one")
	flag.Float64Var(&cfg.faults, "faults", 0, "share of requests that fail, half of them after they were done")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "cloud:", err)
		os.Exit(1)
	}
}

// config configures how slow and how unreliable the cloud is.
type config struct {
	state, token  string
	latency, work time.Duration
	faults        float64
}

// serve serves requests until ctx ends.
func serve(ctx context.Context, listen string, cfg config) error {
	objects, err := open(cfg.state, cfg.work)
	if err != nil {
		return err
	}
	defer func() { _ = objects.close() }()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", l.Addr())
	server := &http.Server{Handler: unreliable(cfg, routes(objects)), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(grace)
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
