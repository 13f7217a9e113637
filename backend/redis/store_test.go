package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/backendtest"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

var server redistest.Shared

// instance keeps each store under a prefix of its own on one server.
func instance(t testing.TB, o backendtest.Options) backendtest.Instance {
	return instanceOf(redis.Config{URL: server.Server(t).URL()}, o)
}

func instanceOf(cfg redis.Config, o backendtest.Options) backendtest.Instance {
	cfg.Prefix, cfg.Clock, cfg.Rand = redistest.Prefix(), o.Clock, o.Rand
	cfg.LogEntries, cfg.LogAge, cfg.LogBytes, cfg.LogSlack, cfg.PurgeInterval = o.LogEntries, o.LogAge, o.LogBytes, -1, o.PurgeInterval
	cfg.Timeout = time.Minute // a busy machine is no fault
	return backendtest.Instance{
		Open:   func() (backendtest.Store, error) { return redis.OpenAnew(context.Background(), cfg) },
		Handle: func(s backendtest.Store) backendtest.Store { return s.(*redis.Store).Handle() },
		Check:  func(s backendtest.Store) error { return s.(*redis.Store).Check(context.Background()) },
	}
}

func TestStore(t *testing.T) { backendtest.Run(t, instance) }

func TestStore_Model(t *testing.T) { backendtest.RunModel(t, instance, 1, 2, 3) }
