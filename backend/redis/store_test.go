package redis_test

import (
	"context"
	"testing"

	"github.com/sluicegw/sluice/backend/backendtest"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

var server redistest.Shared

// instance keeps each store under a prefix of its own on one server.
func instance(t testing.TB, o backendtest.Options) backendtest.Instance {
	cfg := redis.ForTest(redis.Config{
		URL: server.Server(t).URL(), Prefix: redistest.Prefix(), Clock: o.Clock, Rand: o.Rand,
		LogEntries: o.LogEntries, LogAge: o.LogAge, LogBytes: o.LogBytes, LogSlack: -1, PurgeInterval: o.PurgeInterval,
	})
	return backendtest.Instance{
		Open:   func() (backendtest.Store, error) { return redis.Open(context.Background(), cfg) },
		Handle: func(s backendtest.Store) backendtest.Store { return s.(*redis.Store).Handle() },
		Check:  func(s backendtest.Store) error { return s.(*redis.Store).Check(context.Background()) },
	}
}

func TestStore(t *testing.T) { backendtest.Run(t, instance) }

func TestModel(t *testing.T) { backendtest.RunModel(t, instance, 1, 2, 3) }
