package bolt

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// Config configures a [Store]. The zero value uses the file sluice.db in the working directory.
type Config struct {
	// Path is the path of the file. Its folder is created if it does not exist. Default "sluice.db".
	Path string
	// Clock returns the time of the store's clock. Default [time.Now].
	Clock func() time.Time
	// Rand generates epochs. Default: a generator with a random seed.
	Rand *rand.Rand
	// LogEntries is how many entries the log keeps. Default 100,000.
	LogEntries int
	// LogAge is how long the log keeps an entry. Default 24 hours.
	LogAge time.Duration
	// LogBytes is how many bytes the log keeps. Default 256 MiB.
	LogBytes int64
	// PurgeInterval is the pause between two purges in Run. Default 1 s.
	PurgeInterval time.Duration
	// LockTimeout is how long Open waits for a file that another process has open. Default 500 ms.
	LockTimeout time.Duration
	// ReadOnly opens an existing file without changing it, not even its epoch. Other processes can read it at the same
	// time. Apply returns [backend.ErrReadOnly], and expired resources are not removed.
	ReadOnly bool
	// Observe receives measurements of writes. Default: none.
	Observe backend.WriteObservers
	// Logger receives events that no caller sees. Default: none.
	Logger *zap.Logger

	// commit wraps the commit of each transaction, so that tests can inject errors.
	commit func(commit func() error) error
	// probe replaces the attempt to write a number of bytes, in tests.
	probe func(bytes int) error
}

// Validate returns an error if a field is out of range.
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
