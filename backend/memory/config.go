package memory

import (
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/internal/setting"
)

// Config of a store. The zero value is an empty store of its own.
type Config struct {
	// Data holds the contents and outlives the store, so that a store can be
	// reopened. Nil is new, empty data.
	Data *Data
	// Clock is the store's clock; nil is time.Now.
	Clock func() time.Time
	// Rand makes epochs; nil is seeded by the runtime.
	Rand *rand.Rand
	// LogEntries is the most entries the log keeps; 0 means 100,000.
	LogEntries int
	// LogAge is how long the log keeps an entry; 0 means 24 hours.
	LogAge time.Duration
	// LogBytes is the most bytes the log keeps; 0 means 256 MiB.
	LogBytes int64
	// PurgeInterval is the pause between two rounds of Run; 0 means 1 second.
	PurgeInterval time.Duration
	// Logger receives what no caller is told; nil logs nothing.
	Logger *zap.Logger
}

// Validate returns an error that names every field that is out of range.
func (c Config) Validate() error {
	return setting.NotNegative(
		setting.Setting{Name: "LogEntries", Value: int64(c.LogEntries)},
		setting.Setting{Name: "LogAge", Value: int64(c.LogAge)},
		setting.Setting{Name: "LogBytes", Value: int64(c.LogBytes)},
		setting.Setting{Name: "PurgeInterval", Value: int64(c.PurgeInterval)},
	)
}

func (c Config) withDefaults() Config {
	if c.Data == nil {
		c.Data = &Data{}
	}
	if c.Clock == nil {
		c.Clock = time.Now
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
	if c.PurgeInterval == 0 {
		c.PurgeInterval = time.Second
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}
