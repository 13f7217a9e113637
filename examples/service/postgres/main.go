// Command postgres is a resource service whose resources are in PostgreSQL: the kind Project of projects.graphqls.
//
//	postgres --database postgres://localhost/projects --listen 127.0.0.1:9311
//
// It serves the contract of schema/service/v1/resource.proto to Connect and gRPC clients. See docs/services.md.
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

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	database := flag.String("database", "", "URL of the database; empty: what PGHOST, PGDATABASE and so on say")
	listen := flag.String("listen", "127.0.0.1:9311", "host and port to listen on")
	flag.Parse()
	if err := run(ctx, *database, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "projects:", err)
		os.Exit(1)
	}
}

// run serves requests until ctx is done.
func run(ctx context.Context, database, listen string) error {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := open(ctx, pool)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("projects: http://%s\n", listener.Addr())
	const headerTimeout = 10 * time.Second
	server := &http.Server{
		Handler: remote.Handler(s), ReadHeaderTimeout: headerTimeout, Protocols: new(http.Protocols),
		BaseContext: func(net.Listener) context.Context { return ctx }, // so that no call of Changes waits at the end
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true) // gRPC without TLS
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ended <- server.Shutdown(context.WithoutCancel(ctx))
	}()
	err = server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		err = <-ended
	}
	return err
}
