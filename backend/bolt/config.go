package bolt

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// Config of a store. The zero value keeps sluice.db in the working directory.
type Config struct {
	// Path of the file; empty is "sluice.db". Its directory is created if need be.
	Path string
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
	// LockTimeout is how long Open waits for a file that another process holds; 0 means 500 ms.
	LockTimeout time.Duration
	// ReadOnly opens a file that is there and changes nothing in it, not even its epoch. Other processes can read it at
	// the same time. Apply is [backend.ErrReadOnly], and what is expired stays stored.
	ReadOnly bool
	// Observe takes what is measured of writes. Default: nothing is measured.
	Observe backend.WriteObservers
	// Logger receives events that no caller sees; nil logs nothing.
	Logger *zap.Logger

	// commit wraps the commit of every transaction; tests inject faults with it.
	commit func(commit func() error) error
	// probe stands in for trying whether a number of bytes can be written.
	probe func(bytes int) error
}

// Validate returns an error that names every field that is out of range.
func (c Config) Validate() error {
	if min(int64(c.LogEntries), int64(c.LogBytes), int64(c.LogAge), int64(c.PurgeInterval), int64(c.LockTimeout)) < 0 {
		return errors.New("config: LogEntries, LogAge, LogBytes, PurgeInterval and LockTimeout cannot be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	c.Path = cmp.Or(c.Path, "sluice.db")
	c.Rand = cmp.Or(c.Rand, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	c.LogEntries = cmp.Or(c.LogEntries, 100_000)
	c.LogAge = cmp.Or(c.LogAge, 24*time.Hour)
	c.LogBytes = cmp.Or(c.LogBytes, 256<<20)
	c.PurgeInterval = cmp.Or(c.PurgeInterval, time.Second)
	c.LockTimeout = cmp.Or(c.LockTimeout, 500*time.Millisecond)
	c.Observe = c.Observe.WithDefaults()
	c.Logger = cmp.Or(c.Logger, zap.NewNop())
	if c.probe == nil {
		c.probe = c.probeSpace
	}
	if c.commit == nil {
		c.commit = func(commit func() error) error { return commit() }
	}
	return c
}
