package memory

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"
)

// Config configures a [Store]. The zero value is for a new, empty store.
type Config struct {
	// Data has the contents of the store. It can be used for another store after this one is closed. Default: new,
	// empty data.
	Data *Data
	// Clock is the clock of the store. Default: [time.Now].
	Clock func() time.Time
	// Rand generates epochs. Default: a generator with a random seed.
	Rand *rand.Rand
	// LogEntries is the maximum number of entries in the log. Default: 100,000.
	LogEntries int
	// LogAge is how long the log keeps an entry. Default: 24 hours.
	LogAge time.Duration
	// LogBytes is the maximum size of the log in bytes. Default: 256 MiB.
	LogBytes int64
	// PurgeInterval is the time between two purges by Run. Default: 1 second.
	PurgeInterval time.Duration
}

// Validate returns an error if a field is out of range.
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
