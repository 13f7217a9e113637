// Command controller is an example of a controller. For the resources of a gateway it creates, changes and removes
// objects of a cloud, here the simulated one of examples/cloud. It serves all kinds of the catalogue that have a
// management policy and conditions.
//
//	go run ./examples/controller --cloud http://127.0.0.1:8090
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

const (
	queueSize = 1024
	// grace is how long the controller waits for running work when it stops.
	grace          = 10 * time.Second
	gatewayTimeout = 10 * time.Second
)

func main() {
	c := &controller{now: time.Now, log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	server := flag.String("server", os.Getenv("SLUICE_SERVER"), "URL of the gateway")
	cloud := flag.String("cloud", "http://127.0.0.1:8090", "URL of the cloud")
	workers := flag.Int("workers", 8, "how many resources are worked on at a time")
	flag.DurationVar(&c.resync, "resync", 10*time.Hour, "how often a resource is looked at that has no resyncPeriod; 0 is never")
	flag.DurationVar(&c.poll, "poll", time.Second, "how often the cloud is asked for what it has not finished")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	c.cloud = newCloud(*cloud)
	if c.gateway, err = client.New(client.Config{Server: *server, Token: client.FixedToken(os.Getenv("SLUICE_TOKEN")), Timeout: gatewayTimeout}); err == nil {
		err = c.run(ctx, *workers)
	}
	if err != nil && ctx.Err() == nil {
		c.log.Error("ended", "cause", err)
		os.Exit(1)
	}
}

// run works until ctx ends, and then waits at most grace for running work.
func (c *controller) run(ctx context.Context, workers int) error {
	kinds, err := c.claim(ctx)
	if err != nil {
		return err
	}
	q := newQueue(queueSize)
	ctx, cancel := context.WithCancel(ctx)
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(grace, end) })
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { q.work(ctx, working, c.reconcile) })
	}
	err = c.watch(ctx, kinds, q)
	cancel()
	all.Wait()
	end()
	return err
}

// claim finds the kinds that the controller supports and takes control of them. From then on the controller determines
// when a resource is ready.
func (c *controller) claim(ctx context.Context) (kinds []client.Kind, err error) {
	err = c.retry(ctx, func() error {
		all, err := c.gateway.DescribedKinds(ctx)
		if err != nil {
			return err
		}
		kinds, c.kinds = nil, map[string]client.Kind{}
		for _, k := range all {
			if !supported(k) {
				continue
			}
			if _, err := c.gateway.ControlKind(ctx, k.Name, true); err != nil {
				return err
			}
			kinds, c.kinds[k.Name] = append(kinds, k), k
		}
		return nil
	})
	if err == nil && len(kinds) == 0 {
		err = errors.New("the gateway has no kind with a management policy and conditions")
	}
	return kinds, err
}

// retry calls do until it succeeds. It stops if the gateway returns an error that is not retryable.
func (c *controller) retry(ctx context.Context, do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := do()
		var e *client.Error
		if err == nil || errors.As(err, &e) && !e.Extensions.Retryable {
			return err
		}
		c.log.Warn("the gateway does not answer", "cause", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// watch adds each existing resource to the queue, and then each resource that changes. If the connection is lost, the
// client continues after the last change. If that is not possible, it begins with the existing resources again.
func (c *controller) watch(ctx context.Context, kinds []client.Kind, q *queue) error {
	for change, err := range c.gateway.Changes(ctx, client.ChangesRequest{
		Kinds: kinds, Snapshot: true, NamesOnly: true,
		Lost: func(cause error) { c.log.Warn("the stream of changes is taken up again", "cause", cause) },
	}) {
		if err != nil {
			return fmt.Errorf("changes: %w", err)
		}
		if r := change.Resource; r != nil {
			k := key{Kind: r.Kind, Name: r.Metadata.Name}
			if r.Metadata.Namespace != nil {
				k.Namespace = *r.Metadata.Namespace
			}
			q.add(ctx, k)
		}
	}
	return nil
}
