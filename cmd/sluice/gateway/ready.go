package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/server"
)

// readyTimeout returns the time after which the gateway is ready even if the index is not complete.
func (s *Gateway) readyTimeout() time.Duration {
	switch {
	case s.ReadyTimeout != config.ReadyAuto:
		return s.ReadyTimeout
	case s.Store.URL == "":
		return 0 // there is no other gateway that could answer meanwhile
	}
	return time.Minute
}

// ready returns a function that returns an error while the gateway is not ready. The gateway is not ready while the
// store cannot serve. After the start it is also not ready until roles and bindings are read and the index is complete,
// or until the timeout has passed.
func (c *catalogues) ready(store gatewayStore, timeout time.Duration) func(context.Context) error {
	begin := time.Now()
	var done atomic.Bool
	return func(ctx context.Context) error {
		err := store.Ready(ctx)
		var unconfirmed *redis.NoReplicaError
		switch {
		case errors.As(err, &unconfirmed):
			return &server.NotReadyError{Why: unconfirmed.Error()}
		case err != nil || done.Load():
			return err
		}
		if time.Since(begin) >= timeout {
			done.Store(true)
			return nil
		}
		svc := c.current()
		if rights := svc.Reader.PolicySource(); rights != nil && rights.Version() == 0 {
			return &server.NotReadyError{Why: "the roles and bindings are being read"}
		}
		if x := svc.Index(); x != nil {
			if s := x.Stats(); s.Filling > 0 {
				return &server.NotReadyError{Why: fmt.Sprintf("%d of %d kinds are in memory", s.Served, s.Kinds)}
			}
		}
		done.Store(true)
		return nil
	}
}

// filling returns a line for each kind that is being loaded into the index.
func (c *catalogues) filling() []string {
	if x := c.current().Index(); x != nil {
		return x.Progress()
	}
	return nil
}
