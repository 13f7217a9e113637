package memory

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"
)

// Config of a store. The zero value is a new, empty store.
type Config struct {
	// Data has the contents. It outlives the store, so that a store can be opened again. Default:
	// new, empty data.
	Data *Data
	// Clock of the store. Default: time.Now.
	Clock func() time.Time
	// Rand generates epochs. Default: seeded by the runtime.
	Rand *rand.Rand
	// LogEntries is the maximum number of entries in the log. Default 100,000.
	LogEntries int
	// LogAge is how long the log keeps an entry. Default 24 hours.
	LogAge time.Duration
	// LogBytes is the maximum size of the log in bytes. Default 256 MiB.
	LogBytes int64
	// PurgeInterval is the pause between two rounds of Run. Default 1 second.
	PurgeInterval time.Duration
}

// Validate returns an error that names every field that is out of range.
func (c Config) Validate() error {
	if min(int64(c.LogEntries), int64(c.LogBytes), int64(c.LogAge), int64(c.PurgeInterval)) < 0 {
		return errors.New("config: LogEntries, LogAge, LogBytes and PurgeInterval cannot be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Data == nil {
		c.Data = &Data{}
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	c.Rand = cmp.Or(c.Rand, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	c.LogEntries = cmp.Or(c.LogEntries, 100_000)
	c.LogAge = cmp.Or(c.LogAge, 24*time.Hour)
	c.LogBytes = cmp.Or(c.LogBytes, 256<<20)
	c.PurgeInterval = cmp.Or(c.PurgeInterval, time.Second)
	return c
}
