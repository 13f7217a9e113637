package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/internal/setting"
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
	// Username and Password take precedence over those of the URL.
	Username, Password string
	// SentinelUsername and SentinelPassword are those of the Sentinels, and take
	// precedence over those of the URL; without them, Sentinels that ask for a
	// password are given that of the servers.
	SentinelUsername, SentinelPassword string
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
	// Logger receives what no caller is told; nil logs nothing.
	Logger *zap.Logger

	// newEpoch makes Open begin an epoch whatever the server's history, as drivers
	// on files do. Tests compare with them.
	newEpoch bool
	// skew is how far ahead tests set the clock of a cluster's node.
	skew func(node string) time.Duration
}

// Validate returns an error that names every field that is out of range.
func (c Config) Validate() error {
	errs := []error{setting.NotNegative(
		setting.Setting{Name: "LogEntries", Value: int64(c.LogEntries)},
		setting.Setting{Name: "LogAge", Value: int64(c.LogAge)},
		setting.Setting{Name: "LogBytes", Value: int64(c.LogBytes)},
		setting.Setting{Name: "PurgeInterval", Value: int64(c.PurgeInterval)},
		setting.Setting{Name: "Timeout", Value: int64(c.Timeout)},
		setting.Setting{Name: "Connections", Value: int64(c.Connections)},
	)}
	if strings.ContainsAny(c.Prefix, "{}") {
		errs = append(errs, fmt.Errorf("%s: braces are not accepted; the store's own say which keys lie together", "Prefix"))
	}
	if c.Shards < 0 || c.Shards > maxShards {
		errs = append(errs, fmt.Errorf("%s: 1 to %d wanted", "Shards", maxShards))
	}
	switch c.Durability {
	case "", DurabilityAsync, DurabilityReplica:
	default:
		errs = append(errs, fmt.Errorf("%s: %q is neither async nor replica", "Durability", c.Durability))
	}
	if _, err := ParseURL(c.url()); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", "URL", err))
	}
	return errors.Join(errs...)
}

func (c Config) url() string {
	if c.URL == "" {
		return "redis://127.0.0.1:6379/0"
	}
	return c.URL
}

func (c Config) withDefaults(at *Address) Config {
	c.URL = c.url()
	if c.Prefix == "" {
		c.Prefix = "sluice:"
	}
	if c.Shards == 0 {
		c.Shards = 1
		if at.Cluster {
			c.Shards = 16
		}
	}
	if c.Durability == "" {
		c.Durability = DurabilityAsync
	}
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if c.LogEntries == 0 {
		c.LogEntries = 100_000
	}
	if c.LogAge == 0 {
		c.LogAge = 24 * time.Hour
	}
	if c.LogBytes == 0 {
		c.LogBytes = 256 << 20
	}
	if c.LogSlack == 0 {
		c.LogSlack = min(128, c.LogEntries/10)
	}
	c.LogSlack = max(c.LogSlack, 0)
	if c.PurgeInterval == 0 {
		c.PurgeInterval = time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = 3 * time.Second
	}
	if c.Connections == 0 {
		c.Connections = 64
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}
