package hub

import (
	"cmp"
	"errors"
	"math/rand/v2"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// Config configures a [Hub]. Only Store is required.
type Config struct {
	// Store is the store to follow. If it has several shards, it must be a [backend.Sharder].
	Store backend.Store
	// Logger receives messages when the watch of the store is interrupted. Default: none.
	Logger *zap.Logger
	// Rand makes the pauses between attempts random. It is used only by Run. Default: a generator with a random seed.
	Rand *rand.Rand
	// Lag receives, for each delivery, the time between its oldest change and the moment when the hub has passed it on,
	// in seconds. Default: none.
	Lag backend.Observer
	// Events is the maximum number of queued events of a watch. Default 1,024.
	Events int
	// Bytes is the maximum size of the queued events of a watch, as counted by [backend.Event.Size]. A single event may
	// be larger. Default 4 MiB.
	Bytes int
	// MaxSubscribers is the maximum number of subscribers at a time: see [Hub.Reserve]. Default 100,000.
	MaxSubscribers int
}

// Validate returns every problem of the configuration, joined.
func (c Config) Validate() error {
	var errs []error
	if c.Store == nil {
		errs = append(errs, errors.New("config: Store is missing"))
	}
	if min(int64(c.Events), int64(c.Bytes), int64(c.MaxSubscribers)) < 0 {
		errs = append(errs, errors.New("config: Events, Bytes and MaxSubscribers cannot be negative"))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	c.Rand = cmp.Or(c.Rand, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	c.Events = cmp.Or(c.Events, 1024)
	c.Bytes = cmp.Or(c.Bytes, 4<<20)
	c.MaxSubscribers = cmp.Or(c.MaxSubscribers, 100_000)
	return c
}
