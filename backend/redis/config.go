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

// Durability defines when a batch is acknowledged.
type Durability string

const (
	// DurabilityAsync acknowledges a batch when the primary has it. A fail-over can lose changes that no replica has
	// yet.
	DurabilityAsync Durability = "async"
	// DurabilityReplica acknowledges a batch when a replica has it too (WAIT). If no replica confirms it in time, the
	// error is ErrUnknown.
	DurabilityReplica Durability = "replica"
)

// Config configures a [Store]. The zero value uses a server at 127.0.0.1:6379.
type Config struct {
	// URL is the URL of the server, of Sentinels or of a cluster: see [ParseURL]. Default redis://127.0.0.1:6379/0.
	URL string
	// Password takes precedence over the password in URL.
	Password string
	// TLS takes precedence over the settings that a rediss URL implies.
	TLS *tls.Config
	// Prefix is the prefix of all keys. Default "sluice:".
	Prefix string
	// Shards is the number of shards, at most 256. An existing store must have been created with the same number.
	// Default 1, or 16 for a cluster.
	Shards int
	// Durability defines when a batch is acknowledged. Default DurabilityAsync.
	Durability Durability
	// Clock replaces the clocks of the servers in tests. Default: the servers' clocks.
	Clock func() time.Time
	// Rand generates epochs. Default: a generator with a random seed.
	Rand *rand.Rand
	// LogEntries is how many entries the log of a shard keeps. Default 100,000.
	LogEntries int
	// LogAge is how long the log keeps an entry. Default 24 hours.
	LogAge time.Duration
	// LogBytes is how many bytes the log of a shard keeps. Default 256 MiB.
	LogBytes int64
	// LogSlack is by how many entries a log may exceed its limits before it is trimmed, so that not every write must
	// trim it. Default 128, but at most a tenth of LogEntries. If negative, there is no slack.
	LogSlack int
	// PurgeInterval is the pause between two purges in Run. Default 1 s.
	PurgeInterval time.Duration
	// Timeout is the maximum duration of an exchange with a server. Default 3 s.
	Timeout time.Duration
	// Connections is the maximum number of connections to a server that calls share. Default 64. One more connection is
	// used for reading heads.
	Connections int
	// LostHistory is called when the server of a shard lacks changes that this gateway has seen. It runs in a separate
	// goroutine, for which Close waits. Default: no call.
	LostHistory func(History)
	// ReadOnly opens an existing store without changing it. If a server does not continue the history of its epoch, the
	// epoch remains until another gateway begins the next one. Apply returns [backend.ErrReadOnly], and expired
	// resources are not removed.
	ReadOnly bool
	// Observe receives measurements of writes. Default: none.
	Observe backend.WriteObservers
	// Logger receives events that no caller sees. Default: none.
	Logger *zap.Logger

	// skew returns by how much a test advances the clock of a node.
	skew func(node string) time.Duration
}

// Validate returns an error that names each field that is out of range.
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

// Sharding returns how a store with this configuration distributes namespaces to shards. The configuration must be
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
