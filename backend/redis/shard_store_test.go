package redis_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend/backendtest"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// manyShards is what a cluster has.
const manyShards = 16

// at keeps each store under a prefix of its own behind one URL.
func at(url string, shards int) backendtest.Opener {
	return func(_ testing.TB, o backendtest.Options) backendtest.Instance {
		return instanceOf(redis.Config{URL: url, Shards: shards}, o)
	}
}

func TestShard_StoreOfManyShards(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	backendtest.Run(t, at(server.Server(t).URL(), manyShards))
}

func TestShard_StoreOnCluster(t *testing.T) {
	parallel(t)
	backendtest.Run(t, at(redistest.Cluster(t).URL(), manyShards))
}

func TestShard_StoreUnderSentinel(t *testing.T) {
	parallel(t)
	backendtest.Run(t, at(redistest.Sentinel(t, 1).URL(), 1))
}
