package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// Durability says when a batch is acknowledged.
type Durability string

// The durabilities.
const (
	// DurabilityAsync acknowledges what the primary has. A failover can lose what
	// no replica had yet.
	DurabilityAsync Durability = "async"
	// DurabilityReplica acknowledges what a replica has, too (WAIT). A batch that no
	// replica confirms in time is ErrUnknown.
	DurabilityReplica Durability = "replica"
)

// Config of a store. The zero value is a server on 127.0.0.1:6379.
type Config struct {
	// URL of the server, of Sentinels or of a cluster, see [ParseURL]; empty is redis://127.0.0.1:6379/0.
	URL string
	// Password takes precedence over the URL's.
	Password string
	// TLS takes precedence over what a rediss URL implies.
	TLS *tls.Config
	// Prefix of all keys; empty is "sluice:".
	Prefix string
	// Shards is the number of shards, at most 256. An existing store must have been
	// created with the same number. 0 means 1, and 16 for a cluster.
	Shards int
	// Durability; empty is DurabilityAsync.
	Durability Durability
	// Clock replaces the servers' clocks in tests; nil means theirs.
	Clock func() time.Time
	// Rand makes epochs; nil is seeded by the runtime.
	Rand *rand.Rand
	// LogEntries is how many entries the log of one shard keeps; 0 means 100,000.
	LogEntries int
	// LogAge is how long the log keeps an entry; 0 means 24 hours.
	LogAge time.Duration
	// LogBytes is how many bytes the log of one shard keeps; 0 means 256 MiB.
	LogBytes int64
	// LogSlack is by how many entries a log may exceed its bounds before it is
	// trimmed, so that not every write has to trim. 0 means 128 but no more than a
	// tenth of LogEntries; negative means none.
	LogSlack int
	// PurgeInterval is the pause between two purges in Run; 0 means 1 second.
	PurgeInterval time.Duration
	// Timeout of one exchange with a server; 0 means 3 seconds.
	Timeout time.Duration
	// Connections is the maximum number of connections to one server that calls
	// share; 0 means 64. Questions about the heads have one of their own besides.
	Connections int
	// LostHistory is called when the server of a shard lacks changes that this gateway has seen. It runs in a separate
	// goroutine, and Close waits for it. Default: no call.
	LostHistory func(History)
	// ReadOnly opens a store that is there and changes nothing in it. An epoch whose server does not continue its
	// history goes on until another gateway begins the next one. Apply is [backend.ErrReadOnly], and what is expired
	// stays stored.
	ReadOnly bool
	// Observe takes what is measured of writes. Default: nothing is measured.
	Observe backend.WriteObservers
	// Logger receives events that no caller sees; nil logs nothing.
	Logger *zap.Logger

	// skew is how far ahead tests set the clock of a cluster's node.
	skew func(node string) time.Duration
}

// Validate returns an error that names every field that is out of range.
func (c Config) Validate() error {
	var errs []error
	least := min(
		int64(c.LogEntries), int64(c.LogBytes), int64(c.LogAge), int64(c.PurgeInterval), int64(c.Timeout),
		int64(c.Connections),
	)
	if least < 0 {
		errs = append(errs, errors.New("config: LogEntries, LogAge, LogBytes, PurgeInterval, Timeout and Connections cannot be negative"))
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		errs = append(errs, errors.New("config: Prefix: braces are not accepted; the store's own say which keys lie together"))
	}
	if c.Shards < 0 || c.Shards > maxShards {
		errs = append(errs, fmt.Errorf("config: Shards: 1 to %d wanted", maxShards))
	}
	switch c.Durability {
	case "", DurabilityAsync, DurabilityReplica:
	default:
		errs = append(errs, fmt.Errorf("Durability: %q is neither async nor replica", c.Durability))
	}
	if _, err := ParseURL(c.url()); err != nil {
		errs = append(errs, fmt.Errorf("URL: %w", err))
	}
	return errors.Join(errs...)
}

func (c Config) url() string { return cmp.Or(c.URL, "redis://127.0.0.1:6379/0") }

// Sharding returns how namespaces are spread over the shards of a store that is made with the configuration, which is
// valid.
func (c Config) Sharding() backend.Sharder {
	at, err := ParseURL(c.url())
	if err != nil {
		return sharding(1)
	}
	return sharding(c.withDefaults(at).Shards)
}

func (c Config) withDefaults(at *Address) Config {
	shards := 1
	if at.Cluster {
		shards = 16
	}
	c.Prefix = cmp.Or(c.Prefix, "sluice:")
	c.Shards = cmp.Or(c.Shards, shards)
	c.Durability = cmp.Or(c.Durability, DurabilityAsync)
	c.Rand = cmp.Or(c.Rand, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	c.LogEntries = cmp.Or(c.LogEntries, 100_000)
	c.LogAge = cmp.Or(c.LogAge, 24*time.Hour)
	c.LogBytes = cmp.Or(c.LogBytes, 256<<20)
	c.LogSlack = max(cmp.Or(c.LogSlack, min(128, c.LogEntries/10)), 0)
	c.PurgeInterval = cmp.Or(c.PurgeInterval, time.Second)
	c.Timeout = cmp.Or(c.Timeout, 3*time.Second)
	c.Connections = cmp.Or(c.Connections, 64)
	c.Observe = c.Observe.WithDefaults()
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	return c
}
